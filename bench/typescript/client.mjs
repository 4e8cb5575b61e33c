// A client on the official TypeScript SDK that measures one conversation, as conversation.go says.
//
//   node client.mjs CONVERSATION COMMAND [ARG]...

import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [text, command, ...args] = process.argv.slice(2);
const { Script, Sessions, Parallel, Time, Slow, Start } = JSON.parse(text);
const sessions = Sessions || 1;
const content = "The quick brown fox jumps over the lazy dog, and on.\n".repeat(20).slice(0, 1024);
const nanoseconds = () => Number(process.hrtime.bigint());

let got = 0;
let swapped = 0;
let agentPeak = 0;
let latencies = [];
const next = new Array(sessions).fill(0);

const app = acp
  .client({ name: "bench-client" })
  .onNotification(acp.methods.client.session.update, async ({ params: { sessionId, update } }) => {
    const { text } = update.content;
    if (text[0] === "{") return void (agentPeak = JSON.parse(text).Peak);
    const session = Number(sessionId.slice(-6));
    const n = Number(text.slice(0, 6));
    if (n !== next[session]) swapped++;
    next[session] = (n + 1) % 1000;
    got++;
    if (Script.Every) latencies.push((performance.timeOrigin + performance.now()) * 1e6 - Number(text.slice(7, 26)));
    if (Slow && n % 10 === 9) await sleep(1);
  })
  .onRequest(acp.methods.client.fs.readTextFile, () => ({ content }))
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => ({
    outcome: { outcome: "selected", optionId: params.options[0].optionId },
  }));

// talk connects to a new agent, opens the sessions, and has f use them.
async function talk(f) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  await app.connectWith(stream, async (agent) => {
    await agent.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true } },
    });
    const ids = [];
    while (ids.length < sessions) {
      ids.push((await agent.request(acp.methods.agent.session.new, { cwd: "/", mcpServers: [] })).sessionId);
    }
    await f(agent, ids);
  });
  child.stdin.end();
  await ended;
}

const ops = Math.max((Script.Updates ?? 0) + (Script.Reads ?? 0), 1) * sessions;
let turns = 0;

async function turn(agent, ids) {
  turns++;
  next.fill(0);
  const prompt = [{ type: "text", text: JSON.stringify(Script) }];
  let begun = 0;
  const worker = async () => {
    while (begun < ids.length) {
      await agent.request(acp.methods.agent.session.prompt, { sessionId: ids[begun++], prompt });
    }
  };
  await Promise.all(Array.from({ length: Parallel || 1 }, worker));
}

const result = { Ops: 0, Nanoseconds: 0, Lost: 0, Swapped: 0 };
try {
  const began = nanoseconds();
  if (Start) {
    do {
      const from = nanoseconds();
      await talk(async () => (result.Nanoseconds += nanoseconds() - from));
      result.Ops++;
    } while (nanoseconds() - began < Time);
  } else {
    await talk(async (agent, ids) => {
      if (Time > 0) {
        for (const from = nanoseconds(); nanoseconds() - from < Time / 5; ) await turn(agent, ids);
      }
      latencies = [];
      const from = nanoseconds();
      do {
        await turn(agent, ids);
        result.Ops += ops;
      } while (nanoseconds() - from < Time);
      result.Nanoseconds = nanoseconds() - from;
      await agent.request(acp.methods.agent.session.prompt, {
        sessionId: ids[0],
        prompt: [{ type: "text", text: JSON.stringify({ Memory: true }) }],
      });
    });
  }
} catch (error) {
  result.Error = String(error);
}
result.Nanoseconds /= result.Ops || 1;
result.Lost = (Script.Updates ?? 0) * sessions * turns - got;
result.Swapped = swapped;
result.Client = { Peak: process.resourceUsage().maxRSS * 1024 };
result.Agent = { Peak: agentPeak };
latencies.sort((a, b) => a - b);
result.P50 = latencies[Math.floor(latencies.length / 2)] ?? 0;
result.P99 = latencies[Math.floor((latencies.length * 99) / 100)] ?? 0;
console.log(JSON.stringify(result));
process.exit(0);
