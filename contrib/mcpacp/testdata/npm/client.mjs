// A client on the official TypeScript SDK that provides an MCP server over ACP. Its agent is at the other end of standard
// input and output.
//
//   node client.mjs CWD PROMPT...
//
// It sends each prompt, cancels the turn in which the tool "hang" is called, and ends when it has read "the end". The last line of standard error is a JSON
// summary.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { fromMcpServer } from "@agentclientprotocol/sdk/experimental/mcp-server";
import { McpServer } from "@modelcontextprotocol/server";
import * as z from "zod/v4";

const [cwd, ...prompts] = process.argv.slice(2);
const summary = { supported: null, methods: [], aborted: false, stopReasons: [], text: "", calls: {} };

let grown = false;
let hanging = () => {};

const text = (text) => ({ content: [{ type: "text", text }] });

const tools = fromMcpServer(() => {
  const server = new McpServer({ name: "ts", version: "1.0.0" }, { capabilities: { tools: { listChanged: true } } });
  server.registerTool("echo", { title: "Echo", inputSchema: z.object({ message: z.string() }), annotations: { readOnlyHint: true } }, ({ message }) =>
    text(`echo of ${message}`),
  );
  server.registerTool("count", { inputSchema: z.object({}) }, async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= 3; progress++) {
      await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
    }
    return text("counted");
  });
  server.registerTool("fail", { inputSchema: z.object({}) }, () => ({ isError: true, ...text("it failed") }));
  server.registerTool("grow", { inputSchema: z.object({}) }, () => {
    grown = true;
    tools.notify.toolsChanged();
    return text("grown");
  });
  server.registerTool("hang", { inputSchema: z.object({}) }, (_, ctx) => {
    hanging();
    return new Promise((resolve) =>
      ctx.mcpReq.signal.addEventListener("abort", () => {
        summary.aborted = true;
        resolve(text("aborted"));
      }),
    );
  });
  if (grown) server.registerTool("new", { inputSchema: z.object({}) }, () => text("new"));
  server.registerResource("note", "note://1", {}, (uri) => ({ contents: [{ uri: uri.href, text: "a note" }] }));
  server.registerPrompt("greet", {}, () => ({ messages: [{ role: "user", content: { type: "text", text: "Hello" } }] }));
  return server;
});

const provider = new acp.McpOverAcpProvider();
const app = acp
  .client({ name: "mcp-client" })
  .onRequest(acp.methods.client.mcp.message, (context) => {
    summary.methods.push(context.params.method);
    return provider.handleRequest(context);
  })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => ({
    outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId },
  }))
  .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
    if (update.sessionUpdate === "agent_message_chunk") summary.text += update.content.text;
    if (update.sessionUpdate === "tool_call") summary.calls[update.toolCallId] = { title: update.title };
    if (update.sessionUpdate === "tool_call_update") Object.assign(summary.calls[update.toolCallId], { status: update.status ?? undefined });
  });

const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
const connection = app.connect(stream);
const { agent } = connection;
const server = provider.registerServer(agent, { name: "ts", handler: tools.handler });
const methods = acp.methods.agent;
const { agentCapabilities } = await agent.request(methods.initialize, {
  protocolVersion: acp.PROTOCOL_VERSION,
  clientCapabilities: {},
  clientInfo: { name: "mcp-client", version: "1.0.0" },
});
summary.supported = agentCapabilities.mcpCapabilities.acp;
const { sessionId } = await agent.request(methods.session.new, { cwd, mcpServers: [server.declaration] });
hanging = () => agent.notify(methods.session.cancel, { sessionId });
for (const prompt of prompts) {
  const { stopReason } = await agent.request(methods.session.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
  summary.stopReasons.push(stopReason);
}
while (!summary.text.includes("the end")) await new Promise(setImmediate); // updates are handled after answers
summary.calls = Object.values(summary.calls).map(({ title, status }) => `${title} ${status}`);
console.error(JSON.stringify(summary));
process.exit(0);
