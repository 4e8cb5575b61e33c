// An agent on the official TypeScript SDK that sends as many updates as it is asked for, over HTTP and WebSocket, on a port
// of 127.0.0.1 that is free. The first line of standard output is its address, the last one its peak memory. It ends with
// standard input.

import { createServer } from "node:http";
import { once } from "node:events";
import { WebSocketServer } from "ws";
import * as acp from "@agentclientprotocol/sdk";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";
import { chunk, parse, peak } from "./flood.mjs";

async function flood(peer, sessionId, order) {
  const { count, size } = parse(order);
  for (let n = 0; n < count; n++) {
    await peer.notify(acp.methods.client.session.update, {
      sessionId,
      update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: chunk(n, size) } },
    });
  }
}

const m = acp.methods.agent;
const createAgent = () =>
  acp
    .agent({ name: "flood" })
    .onRequest(m.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: { loadSession: true } }))
    .onRequest(m.session.new, () => ({ sessionId: "one" }))
    .onRequest(m.session.load, async ({ params: { sessionId }, client }) => {
      await flood(client, sessionId, sessionId);
      return {};
    })
    .onRequest(m.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
      await flood(client, sessionId, prompt[0].text);
      return { stopReason: "end_turn" };
    });

const server = new AcpServer({ createAgent });
const http = createServer(createNodeHttpHandler(server));
http.on("upgrade", createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true })));
http.listen(0, "127.0.0.1");
await once(http, "listening");
console.log(`127.0.0.1:${http.address().port}`);

process.stdin.resume();
await once(process.stdin, "end");
console.log(peak());
await server.close();
http.closeAllConnections();
http.close();
