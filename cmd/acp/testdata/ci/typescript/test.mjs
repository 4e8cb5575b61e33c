// The test of the agent: one turn. AGENT is the command that starts it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [command, ...args] = (process.env.AGENT ?? "node agent.mjs").split(" ");
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = once(child, "close");
let said = "";
const app = acp
  .client({ name: "test" })
  .onNotification(acp.methods.client.session.update, ({ params }) => (said += params.update.content.text));
await app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (agent) => {
  await agent.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
    clientInfo: { name: "test", version: "1.0.0" },
  });
  const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
  const { stopReason } = await agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "hello" }] });
  if (stopReason !== "end_turn" || said !== "You said: hello") throw new Error(`${stopReason}: ${said}`);
});
child.stdin.end();
const [status] = await ended;
if (status !== 0) throw new Error(`the agent ended with ${status}`);
