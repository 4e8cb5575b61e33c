// An agent on the official TypeScript SDK that plays the turn that the prompt's text asks for, as
// script.go says.

import { setTimeout as sleep } from "node:timers/promises";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const prose = (size) => "The quick brown fox jumps over the lazy dog, and on.\n".repeat(size / 53 + 1).slice(0, size);
const numbered = (n, size) => String(n).padStart(6, "0") + prose(size).slice(6);
const cycle = 1000; // updates are numbered up to here, and then from 0 again
const chunk = (text) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

const made = new Map(); // the updates of a turn, made once
function chunks(count, size) {
  const key = `${count} ${size}`;
  if (!made.has(key)) made.set(key, Array.from({ length: count }, (_, n) => chunk(numbered(n, size))));
  return made.get(key);
}

let count = 0;

async function play(peer, sessionId, script) {
  const { Updates = 0, Size = 0, Every = 0, Asks = 0, Reads = 0, InFlight = 0, Memory = false } = script;
  const send = (update) => peer.notify(acp.methods.client.session.update, { sessionId, update });
  if (Memory) return send(chunk(JSON.stringify({ Peak: process.resourceUsage().maxRSS * 1024 })));
  if (Every > 0) {
    for (let n = 0; n < Updates; n++) {
      await sleep(Every / 1e6);
      const now = BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e3)) * 1000n;
      await send(chunk(`${numbered(n, 64).slice(0, 6)} ${String(now).padStart(19, "0")}${numbered(n, 64).slice(26)}`));
    }
    return;
  }
  const part = Math.floor(Updates / (Asks + 1)) + 1; // updates before each question
  const updates = chunks(Math.min(Updates, cycle), Size);
  for (let n = 0; n < Updates; n++) {
    if (n > 0 && n % part === 0) {
      const { outcome } = await peer.request(acp.methods.client.session.requestPermission, {
        sessionId,
        toolCall: { toolCallId: "call_1" },
        options: [
          { optionId: "allow", name: "Allow", kind: "allow_once" },
          { optionId: "reject", name: "Reject", kind: "reject_once" },
        ],
      });
      if (outcome.optionId !== "allow") throw new Error("not allowed");
    }
    await send(updates[n % cycle]);
  }
  const worker = async (n) => {
    for (let left = Math.floor((Reads + n) / InFlight); left > 0; left--) {
      const { content } = await peer.request(acp.methods.client.fs.readTextFile, { sessionId, path: "/src/conn.go" });
      if (content.length !== 1024) throw new Error("another file");
    }
  };
  await Promise.all(Array.from({ length: InFlight }, (_, n) => worker(n)));
}

const m = acp.methods.agent;
const app = acp
  .agent({ name: "bench-agent" })
  .onRequest(m.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION }))
  .onRequest(m.session.new, () => ({ sessionId: `sess_0196f8c0a1${String(count++).padStart(6, "0")}` }))
  .onRequest(m.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    await play(client, sessionId, JSON.parse(prompt[0].text));
    return { stopReason: "end_turn" };
  });
await app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin))).closed;
