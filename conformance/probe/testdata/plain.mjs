// An agent without a library: what the protocol says, by hand.

import { spawn } from "node:child_process";
import { unlink } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const sessions = new Map();
const waiting = new Map(); // resolvers of this agent's requests, by id
const running = new Map(); // controllers of the client's requests, by id as JSON text
let client; // what the client can do, once it has said so
let count = 0;

class Failure extends Error {
  constructor(code, message, data) {
    super(message);
    Object.assign(this, { code, data });
  }
}
const wrong = (message) => new Failure(-32602, message);
const must = (ok, what) => {
  if (!ok) throw wrong(`Invalid params: ${what}`);
};

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

// The id is sent as it was read: a double does not hold every integer.
const bigId = /"id"\s*:\s*(-?\d{16,})/g;
const idText = (id) => (typeof id === "string" && id.startsWith("int:") ? id.slice(4) : JSON.stringify(id));
const answer = (id, rest) => process.stdout.write(`{"jsonrpc":"2.0","id":${idText(id)},${JSON.stringify(rest).slice(1)}\n`);

function ask(method, params, signal) {
  const id = `plain-${++count}`;
  send({ id, method, params });
  return new Promise((resolve, reject) => {
    waiting.set(id, (m) => (m.error ? reject(new Failure(m.error.code, m.error.message)) : resolve(m.result ?? {})));
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

const object = (v) => v !== null && typeof v === "object" && !Array.isArray(v);

function find({ sessionId }) {
  must(typeof sessionId === "string", "sessionId");
  const session = sessions.get(sessionId);
  if (!session) throw new Failure(-32002, "Resource not found", { sessionId });
  return session;
}

function connect(server) {
  if (!object(server) || typeof server.command !== "string") return;
  const env = Object.fromEntries((server.env ?? []).map(({ name, value }) => [name, value]));
  const child = spawn(server.command, server.args ?? [], { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "ignore"] });
  child.on("error", () => {});
  child.stdin.on("error", () => {});
  const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "plain", version: "1" } };
  child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: hello }) + "\n");
  child.stdout.once("data", () => child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n'));
  process.on("exit", () => child.kill());
}

// play is one turn.
async function play(sessionId, session, text, signal) {
  const update = (update) => send({ method: "session/update", params: { sessionId, update } });
  const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  const named = /(read|delete) the file (\S+?)[,.]?(\s|$)/.exec(text);
  if (text.includes("very long story")) {
    for (let i = 0; i < 10_000; i++) {
      say("Once upon a time. ");
      await sleep(5, undefined, { signal });
    }
    return;
  }
  if (!named) return say("OK");
  const file = path.resolve(session.cwd, named[2]);
  if (path.relative(session.cwd, file).startsWith("..")) return say(`I cannot reach ${file}: it is outside my directory.`);
  const toolCallId = `call-${++count}`;
  const status = (status) => update({ sessionUpdate: "tool_call_update", toolCallId, status });
  const kind = named[1];
  update({ sessionUpdate: "tool_call", toolCallId, title: `${kind} ${named[2]}`, kind, status: "pending", locations: [{ path: file }] });
  try {
    if (kind === "read") {
      status("in_progress");
      if (client.fs?.readTextFile === true) say((await ask("fs/read_text_file", { sessionId, path: file }, signal)).content);
    } else {
      const options = [{ optionId: "yes", name: "Delete", kind: "allow_once" }, { optionId: "no", name: "Keep", kind: "reject_once" }];
      const { outcome } = await ask("session/request_permission", { sessionId, toolCall: { toolCallId }, options }, signal);
      if (outcome?.optionId !== "yes") throw new Failure(0, "refused");
      status("in_progress");
      await unlink(file);
    }
    status("completed");
  } catch (error) {
    status("failed");
    signal.throwIfAborted();
    say(`That did not work: ${error.message}`);
  }
}

const requests = {
  initialize(params) {
    must(Number.isInteger(params.protocolVersion) && params.protocolVersion >= 0 && params.protocolVersion < 65536, "protocolVersion");
    client = object(params.clientCapabilities) ? params.clientCapabilities : {};
    return { protocolVersion: 1, agentCapabilities: {}, agentInfo: { name: "plain", version: "1" } };
  },
  authenticate() {
    throw wrong("Invalid params: no such method");
  },
  "session/new"({ cwd, mcpServers }) {
    must(mcpServers !== undefined, "mcpServers");
    must(typeof cwd === "string" && path.isAbsolute(cwd), "cwd");
    const sessionId = crypto.randomUUID();
    sessions.set(sessionId, { cwd });
    if (Array.isArray(mcpServers)) mcpServers.forEach(connect);
    return { sessionId };
  },
  async "session/prompt"(params, signal, abort) {
    const { prompt, sessionId } = params;
    must(Array.isArray(prompt), "prompt");
    for (const b of prompt) {
      must(object(b) && (b.type === "text" ? typeof b.text === "string" : b.type === "resource_link" && typeof b.uri === "string"), "prompt");
    }
    const session = find(params);
    if (session.abort) throw new Failure(-32600, "a turn is running");
    session.abort = abort;
    try {
      await play(sessionId, session, prompt.map((b) => b.text ?? "").join(""), signal);
      return { stopReason: "end_turn" };
    } catch (error) {
      if (!signal.aborted) throw error;
      return { stopReason: "cancelled" };
    } finally {
      session.abort = undefined;
    }
  },
};

const notifications = {
  "session/cancel": ({ sessionId }) => sessions.get(sessionId)?.abort?.(),
  "$/cancel_request": ({ requestId }) => running.get(idText(requestId))?.(),
};

async function serve({ id, method, params }) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  running.set(idText(id), abort);
  try {
    const handler = Object.hasOwn(requests, method) && requests[method];
    if (!handler) throw new Failure(-32601, "Method not found");
    if (!client && method !== "initialize") throw new Failure(-32600, "not initialized");
    must(object(params), "an object");
    answer(id, { result: await handler(params, controller.signal, abort) });
  } catch ({ code, message, data }) {
    answer(id, { error: { code: Number.isInteger(code) ? code : -32603, message, data } });
  } finally {
    running.delete(idText(id));
  }
}

function take(bytes) {
  let m;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.trim()) return;
    m = JSON.parse(text.replace(bigId, '"id":"int:$1"').replace(/"requestId"\s*:\s*(-?\d{16,})/g, '"requestId":"int:$1"'));
  } catch {
    return answer(null, { error: { code: -32700, message: "Parse error" } });
  }
  if (!object(m) || (m.method === undefined && !("result" in m) && !("error" in m) && m.id === undefined)) {
    return answer(null, { error: { code: -32600, message: "Invalid request" } });
  }
  if (typeof m.method !== "string") {
    const resolve = waiting.get(m.id);
    if (!resolve || !("result" in m || "error" in m)) return;
    waiting.delete(m.id);
    return resolve(m);
  }
  if (m.id !== undefined) return void serve(m);
  if (Object.hasOwn(notifications, m.method) && object(m.params)) notifications[m.method](m.params);
}

let parts = [];
for await (let chunk of process.stdin) {
  for (let end; (end = chunk.indexOf(10)) >= 0; chunk = chunk.subarray(end + 1)) {
    take(Buffer.concat([...parts, chunk.subarray(0, end)]));
    parts = [];
  }
  parts.push(chunk);
}
process.exit(0);
