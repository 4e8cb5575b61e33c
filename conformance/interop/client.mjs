// A client on the official TypeScript SDK that takes an agent through everything it advertises.
//
//   node client.mjs PLAN COMMAND [ARG]...
//   node client.mjs PLAN URL
//
// PLAN is JSON: {"root": directory that is served and is the sessions' working directory,
// "allow", "reject", "long": prompts}. The agent is COMMAND, or at URL. The last line of standard output is a
// JSON summary of what happened; logs go to standard error. The exit status is 0 unless the protocol
// failed.

import { spawn } from "node:child_process";
import { readFile, writeFile, mkdir } from "node:fs/promises";
import path from "node:path";
import * as acp from "@agentclientprotocol/sdk";
import { isURL, withServer } from "./remote.mjs";
import { withAgent } from "./subprocess.mjs";

const log = (...words) => console.error("client:", ...words);

const [planText, ...agentCommand] = process.argv.slice(2);
if (agentCommand.length === 0) {
  log("usage: client.mjs PLAN COMMAND [ARG]... or client.mjs PLAN URL");
  process.exit(2);
}
const plan = JSON.parse(planText);
const root = path.resolve(plan.root);

// What happened, for whoever started us.
const summary = {
  agent: null, // its name
  stopReasons: {}, // by prompt
  updates: {}, // how many of each kind
  text: {}, // the agent's messages, by prompt
  toolCalls: {}, // last status of each call
  permissions: {}, // the kinds of the options chosen, by prompt
  reads: [],
  writes: [],
  terminals: [], // the output of each
  steps: [], // requests that were answered, in order
  replayed: 0, // updates before the answer to session/load
  replayedOnResume: 0, // history that a session/resume must not send
  exit: null,
};

// Which prompt is running, and the answer to permission requests.
let turn = "";
let choice = "allow";
let onChunk = () => {};
let cancelling = false; // then what is asked for is answered as cancelled
let replaying = null;

const terminals = new Map();

// within resolves a path and refuses what is outside the root.
function within(file) {
  const relative = path.relative(root, file);
  if (!path.isAbsolute(file) || relative.startsWith("..") || path.isAbsolute(relative)) {
    throw acp.RequestError.invalidParams({ path: file }, "outside of the root");
  }
  return file;
}

function terminal(id) {
  const found = terminals.get(id);
  if (!found) throw acp.RequestError.invalidParams({ terminalId: id }, "no such terminal");
  return found;
}

// Output that is kept: its end, up to the limit, cut where a character begins.
function keep(t, data) {
  t.output = Buffer.concat([t.output, data]);
  const excess = t.output.length - t.limit;
  if (excess <= 0) return;
  let from = excess;
  while (from < t.output.length && (t.output[from] & 0xc0) === 0x80) from++;
  t.output = t.output.subarray(from);
  t.truncated = true;
}

const app = acp
  .client({ name: "interop-client" })
  .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
    const kind = update.sessionUpdate;
    summary.updates[kind] = (summary.updates[kind] ?? 0) + 1;
    if (replaying) return replaying(kind);
    if (kind === "agent_message_chunk" && update.content.type === "text") {
      summary.text[turn] = (summary.text[turn] ?? "") + update.content.text;
      onChunk();
    }
    if (kind === "tool_call" || (kind === "tool_call_update" && update.status)) {
      summary.toolCalls[update.toolCallId] = update.status ?? "pending";
    }
  })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    const option = cancelling ? undefined : params.options.find((o) => o.kind.startsWith(choice));
    (summary.permissions[turn] ??= []).push(option ? option.kind : "none");
    return {
      outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" },
    };
  })
  .onRequest(acp.methods.client.fs.readTextFile, async ({ params }) => {
    summary.reads.push(path.relative(root, within(params.path)));
    let content;
    try {
      content = await readFile(params.path, "utf8");
    } catch (error) {
      throw acp.RequestError.resourceNotFound(params.path);
    }
    if (params.line || params.limit) {
      const from = Math.max((params.line ?? 1) - 1, 0);
      const lines = content.split(/(?<=\n)/);
      content = lines.slice(from, params.limit == null ? undefined : from + params.limit).join("");
    }
    return { content };
  })
  .onRequest(acp.methods.client.fs.writeTextFile, async ({ params }) => {
    summary.writes.push(path.relative(root, within(params.path)));
    await mkdir(path.dirname(params.path), { recursive: true });
    await writeFile(params.path, params.content);
    return {};
  })
  .onRequest(acp.methods.client.terminal.create, ({ params }) => {
    const id = `terminal-${terminals.size + 1}`;
    const env = { ...process.env };
    for (const { name, value } of params.env ?? []) env[name] = value;
    const child = spawn(params.command, params.args ?? [], {
      cwd: params.cwd ?? root,
      env,
      shell: params.args === undefined || params.args.length === 0,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const t = { child, output: Buffer.alloc(0), limit: params.outputByteLimit ?? 1 << 20, truncated: false };
    child.stdout.on("data", (data) => keep(t, data));
    child.stderr.on("data", (data) => keep(t, data));
    t.exited = new Promise((resolve) => {
      child.once("error", (error) => {
        keep(t, Buffer.from(String(error)));
        resolve({ exitCode: 127, signal: null });
      });
      child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
    });
    t.exited.then((status) => (t.status = status));
    terminals.set(id, t);
    return { terminalId: id };
  })
  .onRequest(acp.methods.client.terminal.output, ({ params }) => {
    const t = terminal(params.terminalId);
    return { output: t.output.toString("utf8"), truncated: t.truncated, exitStatus: t.status ?? null };
  })
  .onRequest(acp.methods.client.terminal.waitForExit, ({ params }) => terminal(params.terminalId).exited)
  .onRequest(acp.methods.client.terminal.kill, ({ params }) => {
    terminal(params.terminalId).child.kill("SIGKILL");
    return {};
  })
  .onRequest(acp.methods.client.terminal.release, async ({ params }) => {
    const t = terminal(params.terminalId);
    terminals.delete(params.terminalId);
    t.child.kill("SIGKILL");
    await t.exited;
    summary.terminals.push(t.output.toString("utf8"));
    return {};
  });

async function drive(agent) {
  const call = async (method, params) => {
    const result = await agent.request(method, params);
    summary.steps.push(method);
    return result;
  };
  const m = acp.methods.agent;

  const { protocolVersion, agentCapabilities: can, authMethods, agentInfo } = await call(m.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {
      fs: { readTextFile: true, writeTextFile: true },
      terminal: true,
      session: { configOptions: { boolean: {} } },
    },
    clientInfo: { name: "interop-client", version: "1.0.0" },
  });
  if (protocolVersion !== acp.PROTOCOL_VERSION) throw new Error(`the agent speaks version ${protocolVersion}`);
  summary.agent = agentInfo?.name ?? null;

  const login = (authMethods ?? []).find((method) => !("type" in method));
  if (login) await call(m.authenticate, { methodId: login.id });

  const session = await call(m.session.new, { cwd: root, mcpServers: [] });
  const { sessionId } = session;

  // Every setting is changed, and set back, so that the turns are played as the agent starts out.
  const { availableModes = [], currentModeId } = session.modes ?? {};
  for (const modeId of [availableModes.find(({ id }) => id !== currentModeId)?.id, currentModeId]) {
    if (modeId) await call(m.session.setMode, { sessionId, modeId });
  }
  for (const { id: configId, type, currentValue, options } of session.configOptions ?? []) {
    if (type === "boolean") {
      for (const value of [!currentValue, currentValue]) {
        await call(m.session.setConfigOption, { sessionId, configId, type, value });
      }
    } else if (type === "select") {
      const values = options.flatMap((o) => ("group" in o ? o.options : [o])).map(({ value }) => value);
      for (const value of [values.find((value) => value !== currentValue), currentValue]) {
        if (value) await call(m.session.setConfigOption, { sessionId, configId, value });
      }
    }
  }

  const prompt = async (name, id = sessionId) => {
    turn = name;
    const { stopReason } = await call(m.session.prompt, {
      sessionId: id, prompt: [{ type: "text", text: plan[name] }],
    });
    summary.stopReasons[name] = stopReason;
  };
  await prompt("allow");
  choice = "reject";
  await prompt("reject");

  // Cancelled as soon as something of it has arrived.
  onChunk = () => {
    onChunk = () => {};
    cancelling = true;
    void agent.notify(m.session.cancel, { sessionId });
  };
  await prompt("long");
  cancelling = false;

  const lifecycle = can?.sessionCapabilities ?? {};
  const roots = { cwd: root, mcpServers: [] };
  if (lifecycle.list) {
    const { sessions } = await call(m.session.list, {});
    if (!sessions.some((s) => s.sessionId === sessionId)) throw new Error("session/list lacks the session");
  }
  if (lifecycle.close) await call(m.session.close, { sessionId });
  if (can?.loadSession === true) {
    replaying = () => summary.replayed++;
    await call(m.session.load, { sessionId, ...roots });
    if (lifecycle.close) await call(m.session.close, { sessionId });
  }
  if (lifecycle.resume) {
    const history = ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call"];
    replaying = (kind) => (summary.replayedOnResume += history.includes(kind) ? 1 : 0);
    await call(m.session.resume, { sessionId, ...roots });
  }
  replaying = null;
  if (lifecycle.delete) {
    await call(m.session.delete, { sessionId });
    if (lifecycle.list) {
      const { sessions } = await call(m.session.list, {});
      if (sessions.some((s) => s.sessionId === sessionId)) throw new Error("session/list has a deleted session");
    }
  }
  if (can?.auth?.logout) await call(m.logout, {});
}

const { exit, failed } = isURL(agentCommand[0])
  ? await withServer(agentCommand[0], log, (stream) => app.connectWith(stream, drive))
  : await withAgent(agentCommand, log, (input, output) => app.connectWith(acp.ndJsonStream(input, output), drive));
summary.exit = exit;
for (const t of terminals.values()) t.child.kill("SIGKILL");
console.log(JSON.stringify(summary));
process.exitCode = failed ? 1 : 0;
