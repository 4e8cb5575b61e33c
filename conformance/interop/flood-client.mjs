// A client on the official TypeScript SDK that asks the agent at a URL for updates, and counts them.
//
//   node flood-client.mjs URL prompt|load COUNT SIZE
//
// The last line of standard output is JSON: how many updates were handled, how many of them before the answer was, how many
// came out of order, the seconds from the request to its answer and to the last update, and this process's peak memory.

import { setTimeout as sleep } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk";
import { order, peak } from "./flood.mjs";
import { openStream } from "./remote.mjs";

const [url, method] = process.argv.slice(2);
const [count, size] = process.argv.slice(4).map(Number);

let handled = 0;
let disordered = 0;
let last = 0;
const app = acp
  .client({ name: "flood-client" })
  .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
    if (parseInt(update.content.text, 10) !== handled || update.content.text.length !== size) disordered++;
    handled++;
    last = performance.now();
  });

const m = acp.methods.agent;
await app.connectWith(await openStream(url), async (agent) => {
  await agent.request(m.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  const { sessionId } = await agent.request(m.session.new, { cwd: "/", mcpServers: [] });
  const begun = performance.now();
  if (method === "load") {
    await agent.request(m.session.load, { sessionId: order(count, size), cwd: "/", mcpServers: [] });
  } else {
    await agent.request(m.session.prompt, { sessionId, prompt: [{ type: "text", text: order(count, size) }] });
  }
  const answered = performance.now();
  const before = handled;
  for (let tries = 0; handled < count && tries < 100; tries++) await sleep(100); // what is still to come
  const seconds = (Math.max(answered, last) - begun) / 1000;
  console.log(JSON.stringify({ handled, before, disordered, answered: (answered - begun) / 1000, seconds, peak: peak() }));
});
