// The agent of the clients in this folder: at a URL.

import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";

/** Says whether a word is the URL of an agent. */
export const isURL = (word) => /^(http|ws)s?:/.test(word);

/**
 * Opens a stream over the transport that the URL's scheme names. The environment may have a bearer token, or the file with
 * goose's transport, which is to be used in place of the SDK's.
 */
export async function openStream(url) {
  if (process.env.ACP_INTEROP_GOOSE) {
    const goose = await import(process.env.ACP_INTEROP_GOOSE);
    return goose.createHttpStream(url.replace(/\/acp$/, ""));
  }
  const token = process.env.ACP_INTEROP_TOKEN;
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return url.startsWith("ws") ? createWebSocketStream(url, { WebSocket, headers }) : createHttpStream(url, { headers });
}

/** Has drive talk to the agent at a URL, and returns how that went, as withAgent does. */
export async function withServer(url, log, drive) {
  try {
    await drive(await openStream(url));
  } catch (error) {
    log(error);
    return { exit: 1, failed: true };
  }
  return { exit: 0, failed: false };
}
