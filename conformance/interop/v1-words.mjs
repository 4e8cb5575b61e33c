// A client and an agent of version 1 on the official TypeScript SDK, which speak on standard input and output, for tests of
// package translate:
//
//   node v1-words.mjs agent
//   node v1-words.mjs client STEPS
//
// The words of a prompt tell the agent what to do. STEPS is a JSON list of what the client does. When it has done that, it
// reports what a user has seen as JSON on standard error.

import { setTimeout as sleep } from "node:timers/promises";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [role, steps] = process.argv.slice(2);
const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
const m = acp.methods.agent;

function agent() {
  const sessions = new Map();
  let count = 0;
  const find = (id) => {
    if (!sessions.get(id)?.open) throw acp.RequestError.sessionNotFound(id);
    return sessions.get(id);
  };
  const modes = ["ask", "code"].map((id) => ({ id, name: id }));
  const state = ({ mode, tone }) => ({
    modes: { currentModeId: mode, availableModes: modes },
    configOptions: [{
      type: "select", id: "tone", name: "Tone", currentValue: tone,
      options: ["plain", "warm"].map((value) => ({ value, name: value })),
    }],
  });
  const play = async (session, sessionId, text, peer, signal) => {
    const update = async (update) => {
      session.history.push(update);
      await peer.notify(acp.methods.client.session.update, { sessionId, update });
    };
    for (const word of text.split(" ")) {
      const [verb, value] = word.split("=");
      const toolCallId = `call-${++count}`;
      const call = (more) => update({ sessionUpdate: "tool_call", toolCallId, title: verb, status: "in_progress", ...more });
      const done = (more) => update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", ...more });
      const entry = { content: "Plan", priority: "medium" };
      const content = { type: "text", text: value };
      switch (verb) {
        case "say": await update({ sessionUpdate: "agent_message_chunk", content }); break;
        case "think": await update({ sessionUpdate: "agent_thought_chunk", content }); break;
        case "plan":
          await update({ sessionUpdate: "plan", entries: [{ ...entry, status: "pending" }] });
          await update({ sessionUpdate: "plan", entries: [{ ...entry, status: "completed" }] });
          break;
        case "diff":
          await call({ kind: "edit", content: [{ type: "diff", path: "/w/a.txt", oldText: "a\nb\n", newText: "a\nc\n" }] });
          await done({});
          break;
        case "ask": {
          await call({ kind: "edit", status: "pending" });
          const options = [
            { optionId: "y", name: "Yes", kind: "allow_once" }, { optionId: "n", name: "No", kind: "reject_once" },
          ];
          const { outcome } = await peer.request(acp.methods.client.session.requestPermission, {
            sessionId, toolCall: { toolCallId, title: `ask ${value}` }, options,
          });
          if (outcome.outcome !== "selected") return "cancelled";
          if (outcome.optionId === "y") await done({ status: "in_progress" });
          await done({ status: outcome.optionId === "y" ? "completed" : "failed" });
          break;
        }
        case "term": {
          const terminal_id = `terminal-${count}`;
          await call({ kind: "execute", content: [{ type: "terminal", terminalId: terminal_id }], _meta: { terminal_info: { terminal_id, cwd: "/w" } } });
          await done({ status: "in_progress", _meta: { terminal_output: { terminal_id, data: "made\n" } } });
          await done({ _meta: { terminal_exit: { terminal_id, exit_code: 0, signal: null } } });
          break;
        }
        case "mode":
          session.mode = value;
          await update({ sessionUpdate: "current_mode_update", currentModeId: value });
          break;
        case "wait": await sleep(60_000, undefined, { signal }); break;
        case "login": throw acp.RequestError.authRequired();
        case "bad": throw acp.RequestError.invalidParams();
        case "fail": throw acp.RequestError.internalError();
        case "refusal": return "refusal";
      }
    }
    return "end_turn";
  };
  const open = (sessionId, cwd) => {
    const session = sessions.get(sessionId);
    if (!session) throw acp.RequestError.sessionNotFound(sessionId);
    return Object.assign(session, { open: true, cwd });
  };
  return acp
    .agent({ name: "words" })
    .onRequest(m.initialize, () => ({
      protocolVersion: acp.PROTOCOL_VERSION,
      agentInfo: { name: "words", version: "1" },
      agentCapabilities: { loadSession: true, sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} }, auth: { logout: {} } },
      authMethods: [{ id: "none", name: "None" }],
    }))
    .onRequest(m.authenticate, () => ({}))
    .onRequest(m.logout, () => ({}))
    .onRequest(m.session.new, ({ params: { cwd } }) => {
      const session = { open: true, cwd, mode: "ask", tone: "plain", history: [] };
      sessions.set(`session-${++count}`, session);
      return { sessionId: `session-${count}`, ...state(session) };
    })
    .onRequest(m.session.load, async ({ params: { sessionId, cwd }, client }) => {
      const session = open(sessionId, cwd);
      for (const update of session.history) await client.notify(acp.methods.client.session.update, { sessionId, update });
      return state(session);
    })
    .onRequest(m.session.resume, ({ params: { sessionId, cwd } }) => state(open(sessionId, cwd)))
    .onRequest(m.session.list, () => ({ sessions: [...sessions].map(([sessionId, { cwd }]) => ({ sessionId, cwd })) }))
    .onRequest(m.session.close, ({ params: { sessionId } }) => {
      Object.assign(find(sessionId), { open: false }).turn?.abort();
      return {};
    })
    .onRequest(m.session.delete, ({ params: { sessionId } }) => {
      sessions.delete(sessionId);
      return {};
    })
    .onRequest(m.session.setMode, ({ params: { sessionId, modeId } }) => {
      if (!modes.some(({ id }) => id === modeId)) throw acp.RequestError.invalidParams();
      find(sessionId).mode = modeId;
      return {};
    })
    .onRequest(m.session.setConfigOption, ({ params: { sessionId, value } }) => {
      find(sessionId).tone = value;
      return { configOptions: state(find(sessionId)).configOptions };
    })
    .onRequest(m.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
      const session = find(sessionId);
      const turn = (session.turn = new AbortController());
      session.history.push(...prompt.map((content) => ({ sessionUpdate: "user_message_chunk", content })));
      try {
        return { stopReason: await play(session, sessionId, prompt[0].text, client, turn.signal) };
      } catch (error) {
        if (turn.signal.aborted) return { stopReason: "cancelled" };
        throw error;
      }
    })
    .onNotification(m.session.cancel, ({ params }) => sessions.get(params.sessionId)?.turn?.abort());
}

/** Does the steps, and returns what happened: the answers, and what is on the screen. */
async function client(steps) {
  const seen = { answers: [], user: "", text: "", thought: "", plan: "", calls: [], asked: [], mode: "", tone: "" };
  const calls = new Map();
  let sessionId, cancelAt, server;
  const event = (name) => {
    if (name !== cancelAt) return;
    cancelAt = undefined;
    void server.notify(m.session.cancel, { sessionId });
  };
  const take = ({ modes, configOptions }) => {
    if (modes) seen.mode = modes.currentModeId;
    for (const { id, currentValue } of configOptions ?? []) if (id === "tone") seen.tone = currentValue;
  };
  const app = acp
    .client({ name: "words" })
    .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
      const { sessionUpdate, content } = update;
      switch (sessionUpdate) {
        case "user_message_chunk": seen.user += content.text; break;
        case "agent_message_chunk": seen.text += content.text; event("text"); break;
        case "agent_thought_chunk": seen.thought += content.text; break;
        case "plan": seen.plan = update.entries.map(({ content, status }) => `${content} ${status}`).join(); break;
        case "current_mode_update": seen.mode = update.currentModeId; break;
        case "config_option_update": take(update); break;
        case "tool_call":
        case "tool_call_update": {
          const call = { content: [], kind: "other", status: "pending", ...calls.get(update.toolCallId) };
          for (const [name, value] of Object.entries(update)) if (value != null) call[name] = value;
          calls.set(update.toolCallId, call);
          event("call");
        }
      }
    })
    .onRequest(acp.methods.client.session.requestPermission, ({ params: { toolCall, options } }) => {
      const wanted = toolCall.title.split(" ").at(-1);
      seen.asked.push(toolCall.title);
      event("ask");
      const option = options.find(({ optionId }) => optionId === wanted);
      return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
    });
  await app.connectWith(stream, async (agent) => {
    server = agent;
    await agent.request(m.initialize, { protocolVersion: 1, clientInfo: { name: "words", version: "1" }, clientCapabilities: {} });
    const roots = { cwd: "/w", mcpServers: [] };
    const verbs = {
      new: async () => {
        const session = await agent.request(m.session.new, roots);
        ({ sessionId } = session);
        take(session);
      },
      load: async () => take(await agent.request(m.session.load, { sessionId, ...roots })),
      resume: async () => take(await agent.request(m.session.resume, { sessionId, ...roots })),
      close: () => agent.request(m.session.close, { sessionId }),
      delete: () => agent.request(m.session.delete, { sessionId }),
      list: async () => (await agent.request(m.session.list, {})).sessions.map((s) => `${s.sessionId === sessionId} ${s.cwd}`).join(),
      login: () => agent.request(m.authenticate, { methodId: "none" }),
      logout: () => agent.request(m.logout, {}),
      mode: async (modeId) => {
        await agent.request(m.session.setMode, { sessionId, modeId });
        seen.mode = modeId;
      },
      tone: async (value) => take(await agent.request(m.session.setConfigOption, { sessionId, configId: "tone", value })),
      cancel: (at) => { cancelAt = at; },
      prompt: async (...words) => {
        const answer = agent.request(m.session.prompt, { sessionId, prompt: [{ type: "text", text: words.join(" ") }] });
        event("start");
        return (await answer).stopReason;
      },
    };
    for (const step of steps) {
      const [verb, ...words] = step.split(" ");
      try {
        const answer = await verbs[verb](...words);
        if (typeof answer === "string") seen.answers.push(`${verb}: ${answer}`);
      } catch (error) {
        seen.answers.push(`${verb}: ${error.code ?? error}`);
      }
    }
  });
  for (const { title, kind, status, content } of calls.values()) {
    const shown = content.map((c) => (c.type === "content" ? c.content.text : c.type === "diff" ? `${c.path} ${c.oldText}${c.newText}` : c.type));
    seen.calls.push([title, kind, status, ...shown].join(" "));
  }
  console.error(JSON.stringify(seen));
}

if (role === "agent") await agent().connect(stream).closed;
else await client(JSON.parse(steps));
