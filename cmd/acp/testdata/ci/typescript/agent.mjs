// An agent on the official TypeScript SDK.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

let count = 0;

const app = acp
  .agent({ name: "parrot" })
  .onRequest(acp.methods.agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: {},
    agentInfo: { name: "parrot", version: "1.0.0" },
  }))
  .onRequest(acp.methods.agent.session.new, () => ({ sessionId: `s-${++count}` }))
  .onRequest(acp.methods.agent.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    for (const block of prompt) {
      const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: `You said: ${block.text}` } };
      await client.notify(acp.methods.client.session.update, { sessionId, update });
    }
    return { stopReason: "end_turn" };
  });

if (process.env.BANNER) console.log(process.env.BANNER); // what no agent should do

const connection = app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await connection.closed;
