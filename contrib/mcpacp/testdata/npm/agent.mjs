// An agent on the official TypeScript SDK, with the official MCP client, on standard input and output. In a turn it calls
// the tools of the first server that the session has, over mcp/message, and says what came of it as JSON.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { Client } from "@modelcontextprotocol/client";

const m = acp.methods.agent;
const clientInfo = { name: "typescript", version: "1" };
const caller = new acp.McpOverAcpCaller({ clientInfo });
let server;

// overACP is a transport of the MCP client: each request is one mcp/message.
function overACP(client, serverId) {
  const transport = {
    hasPerRequestStream: true,
    async start() {},
    async close() {
      transport.onclose?.();
    },
    async send({ id, method, params }, options) {
      const emit = (members) => transport.onmessage?.({ jsonrpc: "2.0", ...members });
      caller
        .request(client, serverId, method, params, {
          signal: options?.requestSignal,
          onNotification: ({ method, params }) => emit({ method, params }),
        })
        .then(
          (outcome) => emit({ id, ...outcome }),
          (error) => emit({ id, error: { code: error.code ?? -32603, message: error.message } }),
        );
    },
  };
  return transport;
}

async function turn(client) {
  const report = { outer: {} };
  const mcp = new Client(clientInfo, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await mcp.connect(overACP(client, server.serverId));
  report.tools = (await mcp.listTools()).tools.map(({ name }) => name);
  const text = ({ content }) => content[0].text;
  report.echo = text(await mcp.callTool({ name: "echo", arguments: { text: "hello" } }));

  report.progress = [];
  const onprogress = ({ message }) => {
    report.progress.push(message);
    // The tool waits for it: the SDK drops notifications that it reads together with the answer.
    void mcp.callTool({ name: "seen", arguments: {} });
  };
  report.progressed = text(await mcp.callTool({ name: "steps", arguments: {} }, { onprogress }));

  const failed = await mcp.callTool({ name: "fail", arguments: {} });
  report.failed = [failed.isError, text(failed)];
  report.unknown = await mcp.callTool({ name: "nothing", arguments: {} }).catch(({ code }) => code);

  const abort = new AbortController();
  const cancelled = mcp.callTool({ name: "wait", arguments: {} }, { signal: abort.signal });
  // A call behind it has been answered when the tool is about to run.
  await mcp.callTool({ name: "began", arguments: {} });
  abort.abort("enough");
  report.cancelled = await cancelled.then(
    () => "answered",
    () => "cancelled",
  );
  await mcp.callTool({ name: "ended", arguments: {} });

  const outer = (serverId, requestId) =>
    caller.request(client, serverId, "tools/list", {}, { requestId }).then(
      () => "answered",
      ({ code }) => code,
    );
  report.outer.unknown = await outer("nobody", "1");
  report.inner = await caller
    .request(client, server.serverId, "tools/list", { _meta: { [acp.MCP_META_PROTOCOL_VERSION]: "2025-06-18" } })
    .then(({ error }) => error);
  await mcp.close();
  return report;
}

const agent = acp
  .agent({ name: "mcp" })
  .onRequest(m.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { mcpCapabilities: { acp: true, http: true } },
    authMethods: [],
    agentInfo: { name: "mcp", version: "1" },
  }))
  .onRequest(m.session.new, async ({ params, client }) => {
    server = params.mcpServers.find(acp.isMcpServerAcp);
    // The server answers before session/new does.
    await caller.request(client, server.serverId, "server/discover");
    return { sessionId: "ts" };
  })
  .onRequest(m.session.prompt, async ({ params, client }) => {
    const report = await turn(client);
    const content = { type: "text", text: JSON.stringify(report) };
    const update = { sessionUpdate: "agent_message_chunk", content };
    await client.notify(acp.methods.client.session.update, { sessionId: params.sessionId, update });
    return { stopReason: "end_turn" };
  })
  .onNotification(m.session.cancel, () => {})
  .onNotification(m.mcp.message, caller.handleNotification);

const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
await agent.connect(stream).closed;
