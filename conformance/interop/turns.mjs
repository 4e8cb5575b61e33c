// An agent on the official TypeScript SDK that needs no model: it plays one turn for every prompt, and keeps sessions in
// memory, which all its connections share. A prompt that begins "Write a very long" streams until it is cancelled.

import { spawn } from "node:child_process";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk";

const modes = [
  { id: "ask", name: "Ask", description: "Asks before it writes" },
  { id: "auto", name: "Auto", description: "Writes without asking" },
];

const sessions = new Map(); // by id; a closed session stays, without being active
let count = 0;

function find(sessionId) {
  const session = sessions.get(sessionId);
  if (!session?.active) throw acp.RequestError.sessionNotFound(sessionId);
  return session;
}

function configOptions(session) {
  const options = [
    {
      type: "select",
      id: "tone",
      name: "Tone",
      category: "_tone",
      currentValue: session.tone,
      options: [
        { value: "plain", name: "Plain" },
        { value: "warm", name: "Warm" },
      ],
    },
  ];
  if (session.client.session?.configOptions?.boolean) {
    options.push({ type: "boolean", id: "brief", name: "Brief", currentValue: session.brief });
  }
  // The same as the modes, for clients that take those no more.
  options.push({
    type: "select",
    id: "mode",
    name: "Mode",
    category: "mode",
    currentValue: session.mode,
    options: modes.map(({ id, name }) => ({ value: id, name })),
  });
  return options;
}

const state = (session) => ({
  modes: { currentModeId: session.mode, availableModes: modes },
  configOptions: configOptions(session),
});

// setMode switches the mode, and tells the client in both ways.
async function setMode(session, sessionId, mode, peer) {
  session.mode = mode;
  for (const update of [
    { sessionUpdate: "current_mode_update", currentModeId: mode },
    { sessionUpdate: "config_option_update", configOptions: configOptions(session) },
  ]) {
    await peer.notify(acp.methods.client.session.update, { sessionId, update });
  }
}

// open makes a stored session active again.
function open(sessionId, cwd, client) {
  check(cwd);
  const session = sessions.get(sessionId);
  if (!session) throw acp.RequestError.sessionNotFound(sessionId);
  Object.assign(session, { cwd, client, active: true });
  return session;
}

// check refuses a working directory that is not an absolute path.
function check(cwd) {
  if (!path.isAbsolute(cwd)) throw acp.RequestError.invalidParams({ cwd });
}

// connect greets an MCP server, and makes no use of it.
function connect({ command, args = [], env = [] }) {
  if (!command) return;
  const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
  const server = spawn(command, args, { env: { ...process.env, ...variables }, stdio: ["pipe", "pipe", "ignore"] });
  for (const emitter of [server, server.stdin]) emitter.on("error", () => {}); // the session goes on without it
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "interop-agent", version: "1.0.0" } };
  server.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }) + "\n");
  server.stdout.once("data", () => server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n'));
  server.unref();
  server.stdin.unref?.();
  server.stdout.unref?.();
  process.once("exit", () => server.kill());
}

async function close(session) {
  session.active = false;
  session.turn?.abort();
  await session.turnEnded;
}

// play is one turn. It throws when the turn is cancelled.
async function play(peer, session, sessionId, text, signal) {
  const update = async (update) => {
    if (update.sessionUpdate !== "plan") session.history.push(update);
    await peer.notify(acp.methods.client.session.update, { sessionId, update });
  };
  const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  const plan = (first, second) =>
    update({
      sessionUpdate: "plan",
      entries: [
        { content: "Write the greeting", priority: "high", status: first },
        { content: "Look at the result", priority: "low", status: second },
      ],
    });

  session.history.push({ sessionUpdate: "user_message_chunk", content: { type: "text", text } });
  if (text.startsWith("Write a very long")) {
    for (let n = 1; n < 120; n++) {
      signal.throwIfAborted();
      await say(`Sentence ${n} of a very long story. `);
      await sleep(1000, undefined, { signal }); // a recording that is played again has time to cancel after the same sentence
    }
    return "end_turn";
  }

  await plan("in_progress", "pending");
  await update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "A file will do." } });
  await say("I write a greeting ");
  await say("into the project.");

  const file = path.join(session.cwd, "greeting.txt");
  let oldText = null;
  if (session.client.fs?.readTextFile) {
    try {
      oldText = (await peer.request(acp.methods.client.fs.readTextFile, { sessionId, path: file })).content;
    } catch (error) {
      if (error.code !== -32002) throw error; // there is none yet
    }
  }
  const newText = `${oldText ?? ""}Hello, world ✓\n`;
  const edit = `call-${++count}`;
  const content = [{ type: "diff", path: file, oldText, newText }];
  await update({
    sessionUpdate: "tool_call", toolCallId: edit, title: "Write greeting.txt", kind: "edit", status: "pending",
    content, locations: [{ path: file, line: 1 }], rawInput: { file, bytes: newText.length },
  });
  if (session.mode === "ask") {
    const { outcome } = await peer.request(
      acp.methods.client.session.requestPermission,
      {
        sessionId,
        toolCall: { toolCallId: edit, title: "Write greeting.txt", content },
        options: [
          { optionId: "allow", name: "Allow", kind: "allow_once" },
          { optionId: "reject", name: "Reject", kind: "reject_once" },
        ],
      },
      { cancellationSignal: signal },
    );
    signal.throwIfAborted();
    if (outcome.outcome === "cancelled") return "cancelled"; // the cancellation itself may be read later
    if (outcome.outcome !== "selected" || outcome.optionId !== "allow") {
      await update({ sessionUpdate: "tool_call_update", toolCallId: edit, status: "failed" });
      await say("Then I leave it.");
      return "end_turn";
    }
  }
  await update({ sessionUpdate: "tool_call_update", toolCallId: edit, status: "in_progress" });
  if (session.client.fs?.writeTextFile) {
    await peer.request(acp.methods.client.fs.writeTextFile, { sessionId, path: file, content: newText });
  }
  await update({ sessionUpdate: "tool_call_update", toolCallId: edit, status: "completed" });
  await plan("completed", "in_progress");

  if (session.client.terminal) {
    const run = `call-${++count}`;
    await update({ sessionUpdate: "tool_call", toolCallId: run, title: "cat greeting.txt", kind: "execute" });
    const terminal = await peer.createTerminal({
      sessionId, command: "cat", args: [file], cwd: session.cwd, env: [{ name: "LC_ALL", value: "C.UTF-8" }],
      outputByteLimit: 4096,
    });
    try {
      await update({
        sessionUpdate: "tool_call_update", toolCallId: run, status: "in_progress",
        content: [{ type: "terminal", terminalId: terminal.id }],
      });
      const { exitCode } = await terminal.waitForExit();
      const { output } = await terminal.currentOutput();
      await update({
        sessionUpdate: "tool_call_update", toolCallId: run, status: exitCode === 0 ? "completed" : "failed",
        rawOutput: { exitCode, output },
      });
    } finally {
      await terminal.release();
    }
  }
  await plan("completed", "completed");
  await say(" Done.");
  return "end_turn";
}

const m = acp.methods.agent;
/** Makes the agent of one connection. */
export function createAgent() {
  let client = {}; // what the client can do
  return acp
    .agent({ name: "interop-agent" })
    .onRequest(m.initialize, ({ params }) => {
      client = params.clientCapabilities ?? {};
      return {
        protocolVersion: acp.PROTOCOL_VERSION,
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, audio: true, embeddedContext: true },
          sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {} },
          auth: { logout: {} },
        },
        authMethods: [{ id: "none", name: "No key", description: "Nothing to give" }],
        agentInfo: { name: "interop-agent", version: "1.0.0" },
      };
    })
    .onRequest(m.authenticate, ({ params: { methodId } }) => {
      if (methodId !== "none") throw acp.RequestError.invalidParams({ methodId });
      return {};
    })
    .onRequest(m.logout, () => ({}))
    .onRequest(m.session.new, ({ params }) => {
      check(params.cwd);
      params.mcpServers.forEach(connect);
      const sessionId = `session-${++count}`;
      const session = { cwd: params.cwd, client, active: true, mode: "ask", tone: "plain", brief: false, history: [] };
      sessions.set(sessionId, session);
      return { sessionId, ...state(session) };
    })
    .onRequest(m.session.load, async ({ params: { sessionId, cwd }, client: peer }) => {
      const session = open(sessionId, cwd, client);
      for (const update of session.history) {
        await peer.notify(acp.methods.client.session.update, { sessionId, update });
      }
      return state(session);
    })
    .onRequest(m.session.resume, ({ params: { sessionId, cwd } }) => state(open(sessionId, cwd, client)))
    .onRequest(m.session.list, ({ params: { cwd: wanted, cursor } }) => {
      if (cursor != null) throw acp.RequestError.invalidParams({ cursor }); // all are on the first page
      const listed = [...sessions].filter(([, { cwd }]) => wanted == null || cwd === wanted);
      return { sessions: listed.map(([sessionId, { cwd }]) => ({ sessionId, cwd, title: `In ${cwd}` })) };
    })
    .onRequest(m.session.close, async ({ params }) => {
      await close(find(params.sessionId));
      return {};
    })
    .onRequest(m.session.delete, async ({ params }) => {
      const session = sessions.get(params.sessionId);
      if (session?.active) await close(session);
      sessions.delete(params.sessionId);
      return {};
    })
    .onRequest(m.session.setMode, async ({ params, client: peer }) => {
      const session = find(params.sessionId);
      if (!modes.some(({ id }) => id === params.modeId)) throw acp.RequestError.invalidParams({ modeId: params.modeId });
      await setMode(session, params.sessionId, params.modeId, peer);
      return {};
    })
    .onRequest(m.session.setConfigOption, async ({ params, client: peer }) => {
      const session = find(params.sessionId);
      if (params.configId === "brief" && typeof params.value === "boolean") session.brief = params.value;
      else if (params.configId === "tone" && ["plain", "warm"].includes(params.value)) session.tone = params.value;
      else if (params.configId === "mode" && modes.some(({ id }) => id === params.value)) {
        await setMode(session, params.sessionId, params.value, peer);
      } else throw acp.RequestError.invalidParams({ configId: params.configId, value: params.value });
      return { configOptions: configOptions(session) };
    })
    .onRequest(m.session.prompt, async ({ params: { sessionId, prompt }, client: peer }) => {
      const session = find(sessionId);
      if (session.turn) throw acp.RequestError.invalidRequest({ sessionId }, "a turn is running");
      const turn = new AbortController();
      let ended;
      session.turn = turn;
      session.turnEnded = new Promise((resolve) => (ended = resolve));
      try {
        const text = prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
        return { stopReason: await play(peer, session, sessionId, text, turn.signal) };
      } catch (error) {
        if (turn.signal.aborted) return { stopReason: "cancelled" };
        throw error;
      } finally {
        session.turn = undefined;
        ended();
      }
    })
    .onNotification(m.session.cancel, ({ params }) => sessions.get(params.sessionId)?.turn?.abort());
}
