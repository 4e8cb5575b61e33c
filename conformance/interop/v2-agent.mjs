// An agent of version 2 on the official TypeScript SDK that needs no model: it plays one turn for every
// prompt, and keeps sessions in memory. A prompt that begins "Write a very long" streams until it is
// cancelled, one that begins "Ask" asks for permission and does nothing else. It speaks on standard input
// and output. With the argument --login, sessions need a login.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const sessions = new Map(); // by id: {cwd, history, state, turn, worked}; one that is closed stays, without being open
const login = process.argv.includes("--login");
let loggedIn = !login;
let count = 0;
const next = (kind) => `${kind}-${++count}`;

function find(sessionId) {
  const session = sessions.get(sessionId);
  if (!session?.open) throw acp.RequestError.sessionNotFound(sessionId);
  return session;
}

// check refuses directories that are not absolute paths, and clients without a login.
function check({ cwd, additionalDirectories }) {
  if (!loggedIn) throw acp.RequestError.authRequired();
  for (const dir of [cwd, ...(additionalDirectories ?? [])]) {
    if (!path.isAbsolute(dir)) throw acp.RequestError.invalidParams({ dir });
  }
}

const models = [
  { value: "large", name: "Large" },
  { value: "small", name: "Small" },
];

// options returns the options of a session.
const options = ({ model, brief }) => [
  { configId: "model", name: "Model", type: "select", currentValue: model, options: models },
  { configId: "brief", name: "Brief", type: "boolean", currentValue: brief },
];

// close cancels the work of a session, and waits for its end.
async function close(session) {
  session.turn?.abort();
  await session.worked;
  session.open = false;
}

// updater sends updates of a session, and keeps what belongs to its history.
const updater = (peer, sessionId, session) => async (update) => {
  if (update.sessionUpdate === "state_update") session.state = update;
  else session.history.push(update);
  await peer.notify(acp.methods.client.session.update, { sessionId, update });
};

class Cancelled extends Error {}

// ask returns whether the user allows a tool call. That the question was cancelled says that the turn was,
// also where session/cancel has not been handled yet.
async function ask(peer, update, sessionId, toolCall, signal) {
  await update({ sessionUpdate: "state_update", state: "requires_action" });
  const { outcome } = await peer.request(
    acp.methods.client.session.requestPermission,
    {
      sessionId,
      title: "Read greeting.txt?",
      description: "It is in the project.",
      subject: { type: "tool_call", toolCall },
      options: [
        { optionId: "allow", name: "Allow", kind: "allow_once" },
        { optionId: "reject", name: "Reject", kind: "reject_once" },
      ],
    },
    { cancellationSignal: signal },
  );
  if (outcome.outcome === "cancelled") throw new Cancelled();
  await update({ sessionUpdate: "state_update", state: "running" });
  return outcome.outcome === "selected" && outcome.optionId === "allow";
}

// play is the work of one turn. It throws when the turn is cancelled.
async function play(peer, update, sessionId, session, text, signal) {
  const messageId = next("message");
  const say = (text) =>
    update({ sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text } });
  if (text.startsWith("Write a very long")) {
    for (let n = 1; n < 12_000; n++) {
      signal.throwIfAborted();
      await say(`Sentence ${n} of a very long story. `);
      await sleep(10, undefined, { signal });
    }
    return;
  }
  const toolCallId = next("call");
  if (text.startsWith("Ask")) {
    await ask(peer, update, sessionId, { toolCallId, title: "Nothing" }, signal);
    return;
  }

  const planId = next("plan");
  const plan = (first, second) =>
    update({
      sessionUpdate: "plan_update",
      plan: {
        type: "items",
        planId,
        entries: [
          { content: "Read the greeting", priority: "high", status: first },
          { content: "Say it", priority: "low", status: second },
        ],
      },
    });
  await plan("in_progress", "pending");
  await update({
    sessionUpdate: "agent_thought",
    messageId: next("thought"),
    content: [{ type: "text", text: "It must be in the file." }],
  });
  await say("I read ");
  await say("the greeting.");

  const toolCall = { toolCallId, title: "cat greeting.txt", kind: "execute", status: "pending" };
  await update({ sessionUpdate: "tool_call_update", ...toolCall, rawInput: { file: "greeting.txt" } });
  if (!(await ask(peer, update, sessionId, toolCall, signal))) {
    await update({ sessionUpdate: "tool_call_update", toolCallId, status: "failed" });
    // The whole message takes the place of its pieces.
    await update({ sessionUpdate: "agent_message", messageId, content: [{ type: "text", text: "Then I do not." }] });
    return;
  }
  const terminalId = next("terminal");
  await update({ sessionUpdate: "terminal_update", terminalId, command: "cat greeting.txt", cwd: session.cwd });
  await update({
    sessionUpdate: "tool_call_update", toolCallId, status: "in_progress", content: [{ type: "terminal", terminalId }],
  });
  const output = await readFile(path.join(session.cwd, "greeting.txt"));
  for (let at = 0; at < output.length; at += 5) {
    // Pieces of bytes, not of characters.
    const data = output.subarray(at, at + 5).toString("base64");
    await update({ sessionUpdate: "terminal_output_chunk", terminalId, data });
  }
  await update({ sessionUpdate: "terminal_update", terminalId, exitStatus: { exitCode: 0 } });
  await update({
    sessionUpdate: "tool_call_content_chunk",
    toolCallId,
    content: { type: "content", content: { type: "text", text: `${output.length} bytes` } },
  });
  // A title that is null is cleared, what is left out stays.
  await update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", title: null });
  await plan("completed", "completed");
  await say(" Done.");
}

// work plays a turn behind the answer to its prompt, and reports its states.
async function work(peer, sessionId, session, prompt, messageId) {
  const turn = session.turn;
  const update = updater(peer, sessionId, session);
  let idle = { sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" };
  try {
    await update({ sessionUpdate: "user_message", messageId, content: prompt });
    await update({ sessionUpdate: "state_update", state: "running" });
    const text = prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
    await play(peer, update, sessionId, session, text, turn.signal);
  } catch (error) {
    if (turn.signal.aborted || error instanceof Cancelled) idle = { ...idle, stopReason: "cancelled" };
    else idle = { ...idle, stopReason: "error", error: { code: -32603, message: String(error) } };
  }
  session.turn = undefined;
  await update(idle);
}

const m = acp.methods.agent;
const app = acp
  .agent({ name: "interop-agent-v2" })
  .onRequest(m.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "interop-agent-v2", version: "1.0.0" },
    capabilities: {
      session: { prompt: { image: {}, audio: {}, embeddedContext: {} }, additionalDirectories: {}, delete: {} },
    },
    authMethods: login ? [{ type: "agent", methodId: "key", name: "Key" }] : [],
  }))
  .onRequest(m.auth.login, ({ params: { methodId } }) => {
    if (!login || methodId !== "key") throw acp.RequestError.invalidParams({ methodId });
    loggedIn = true;
    return {};
  })
  .onRequest(m.auth.logout, () => {
    loggedIn = !login;
    return {};
  })
  .onRequest(m.session.new, ({ params }) => {
    check(params);
    const sessionId = next("session");
    const state = { sessionUpdate: "state_update", state: "idle" };
    const session = { open: true, cwd: params.cwd, history: [], state, model: "large", brief: false };
    sessions.set(sessionId, session);
    return { sessionId, configOptions: options(session) };
  })
  .onRequest(m.session.list, ({ params: { cwd: wanted, cursor } }) => {
    if (cursor != null) throw acp.RequestError.invalidParams({ cursor }); // all are on the first page
    const listed = [...sessions].filter(([, { cwd }]) => wanted == null || cwd === wanted);
    return { sessions: listed.map(([sessionId, { cwd }]) => ({ sessionId, cwd, title: `In ${cwd}` })) };
  })
  .onRequest(m.session.setConfigOption, ({ params: { sessionId, configId, type, value } }) => {
    const session = find(sessionId);
    if (configId === "model" && type === "id" && models.some((m) => m.value === value)) session.model = value;
    else if (configId === "brief" && type === "boolean") session.brief = value;
    else throw acp.RequestError.invalidParams({ configId, value });
    return { configOptions: options(session) };
  })
  .onRequest(m.session.resume, async ({ params, client: peer }) => {
    check(params);
    const { sessionId, replayFrom } = params;
    if (replayFrom && replayFrom.type !== "start") throw acp.RequestError.invalidParams({ replayFrom });
    const session = sessions.get(sessionId);
    if (!session) throw acp.RequestError.sessionNotFound(sessionId);
    session.open = true;
    const send = (update) => peer.notify(acp.methods.client.session.update, { sessionId, update });
    // A message that is replayed in chunks begins as a whole one, with empty content.
    const begun = new Set();
    for (const update of replayFrom ? session.history : []) {
      const { sessionUpdate: kind, messageId } = update;
      const whole = kind.replace(/_chunk$/, "");
      if (messageId && kind !== whole && !begun.has(messageId)) await send({ sessionUpdate: whole, messageId, content: [] });
      begun.add(messageId);
      await send(update);
    }
    await send(session.state);
    return { configOptions: options(session) };
  })
  .onRequest(m.session.close, async ({ params }) => {
    await close(find(params.sessionId));
    return {};
  })
  .onRequest(m.session.delete, async ({ params }) => {
    const session = sessions.get(params.sessionId);
    if (session?.open) await close(session);
    sessions.delete(params.sessionId);
    return {};
  })
  .onRequest(m.session.prompt, ({ params: { sessionId, prompt }, client: peer }) => {
    const session = find(sessionId);
    if (session.turn) throw acp.RequestError.invalidRequest({ sessionId }, "a turn is running");
    session.turn = new AbortController();
    const messageId = next("message");
    session.worked = new Promise((resolve) => {
      setImmediate(() => resolve(work(peer, sessionId, session, prompt, messageId)));
    });
    return { messageId };
  })
  .onNotification(m.session.cancel, ({ params }) => sessions.get(params.sessionId)?.turn?.abort());

const connection = app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await connection.closed;
