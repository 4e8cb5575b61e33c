// A client on the official TypeScript SDK, without telemetry.
//
//   node echo-client.mjs META COMMAND [ARG]...
//
// It runs one turn of the agent COMMAND, with META as the _meta of the prompt. The last line of standard output is JSON:
// which _meta it was given, by method.

import * as acp from "@agentclientprotocol/sdk";
import { withAgent } from "./subprocess.mjs";

const [meta, ...command] = process.argv.slice(2);
const seen = {};
const see = (method, params) => ((seen[method] ??= []).push(params._meta ?? null), params);
const c = acp.methods.client;

const app = acp
  .client({ name: "echo" })
  .onNotification(c.session.update, ({ params }) => void see(c.session.update, params))
  .onRequest(c.session.requestPermission, ({ params }) => {
    see(c.session.requestPermission, params);
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onRequest(c.fs.readTextFile, ({ params }) => {
    see(c.fs.readTextFile, params);
    return { content: "text" };
  });

const log = (...words) => console.error("client:", ...words);
const { failed } = await withAgent(command, log, (input, output) =>
  app.connectWith(acp.ndJsonStream(input, output), async (agent) => {
    const m = acp.methods.agent;
    await agent.request(m.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true } },
    });
    const { sessionId } = await agent.request(m.session.new, { cwd: "/", mcpServers: [] });
    const prompt = [{ type: "text", text: "work" }];
    await agent.request(m.session.prompt, { sessionId, prompt, _meta: JSON.parse(meta) });
  }),
);
console.log(JSON.stringify(seen));
process.exitCode = failed ? 1 : 0;
