// The agent of turns.mjs over HTTP and WebSocket, on a port of 127.0.0.1 that is free. The first line of standard output is
// its address. It ends with standard input.

import { createServer } from "node:http";
import { once } from "node:events";
import { WebSocketServer } from "ws";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";
import { createAgent } from "./turns.mjs";

const acp = new AcpServer({ createAgent });
const http = createServer(createNodeHttpHandler(acp));
http.on("upgrade", createNodeWebSocketUpgradeHandler(acp, new WebSocketServer({ noServer: true })));
http.listen(0, "127.0.0.1");
await once(http, "listening");
console.log(`127.0.0.1:${http.address().port}`);

process.stdin.resume();
await once(process.stdin, "end");
await acp.close();
http.closeAllConnections();
http.close();
