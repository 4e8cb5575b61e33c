// An agent on the official TypeScript SDK, on standard input and output. It has no telemetry, and tells in the answer to
// each prompt which _meta it was given, by method. In a turn it asks for a file twice: with the _meta of the prompt, and
// without any.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const m = acp.methods.agent;
const seen = {};
const see = (method, params) => ((seen[method] ??= []).push(params._meta ?? null), params);

const agent = acp
  .agent({ name: "echo" })
  .onRequest(m.initialize, ({ params }) => {
    see(m.initialize, params);
    return {
      protocolVersion: acp.PROTOCOL_VERSION,
      agentCapabilities: {},
      authMethods: [],
      agentInfo: { name: "echo", version: "0.1" },
    };
  })
  .onRequest(m.session.new, ({ params }) => {
    see(m.session.new, params);
    return { sessionId: "ts" };
  })
  .onRequest(m.session.prompt, async ({ params, client }) => {
    const { sessionId, _meta } = see(m.session.prompt, params);
    const content = { type: "text", text: "here" };
    await client.notify(acp.methods.client.session.update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content } });
    await client.request(acp.methods.client.fs.readTextFile, { sessionId, path: "/with", _meta });
    await client.request(acp.methods.client.fs.readTextFile, { sessionId, path: "/without" });
    return { stopReason: "end_turn", _meta: { seen } };
  })
  .onNotification(m.session.cancel, ({ params }) => void see(m.session.cancel, params));

const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
await agent.connect(stream).closed;
