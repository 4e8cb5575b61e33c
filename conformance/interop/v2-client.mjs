// A client of version 2 on the official TypeScript SDK that takes an agent through a session.
//
//   node v2-client.mjs PLAN COMMAND [ARG]...
//
// PLAN is JSON: {"root": the session's working directory, "allow", "reject", "long": prompts}. The agent
// is COMMAND. The last line of standard output is a JSON summary of what happened; logs go to standard
// error. The exit status is 0 unless the protocol failed.

import * as acp from "@agentclientprotocol/sdk/experimental/v2";
import { withAgent } from "./subprocess.mjs";

const log = (...words) => console.error("client:", ...words);

const [planText, ...agentCommand] = process.argv.slice(2);
if (agentCommand.length === 0) {
  log("usage: v2-client.mjs PLAN COMMAND [ARG]...");
  process.exit(2);
}
const plan = JSON.parse(planText);

// What happened, for whoever started us.
const summary = {
  agent: null, // its name
  stopReasons: {}, // by prompt
  states: {}, // by prompt, in order
  updates: {}, // how many of each kind
  text: {}, // the agent's messages, by prompt
  echoed: {}, // by prompt: the user's message came back with the id that the answer has
  toolCalls: {}, // last status of each call
  terminals: [], // output and exit code of each
  permissions: {}, // the kinds of the options chosen, by prompt
  listed: false,
  replayed: {}, // how many updates of each kind session/resume replayed
  unknown: 0, // the code of the error for a session that there is not
  exit: null,
};

const output = {}; // of each terminal, as bytes: a piece may end within a character
let turn = "";
let replaying = false;
const app = acp
  .client({ name: "interop-client-v2" })
  .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
    const counts = replaying ? summary.replayed : summary.updates;
    counts[update.sessionUpdate] = (counts[update.sessionUpdate] ?? 0) + 1;
  })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    const option = params.options.find((o) => o.kind.startsWith(turn));
    (summary.permissions[turn] ??= []).push(option ? option.kind : "none");
    return {
      outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" },
    };
  });

// take notes what an update says.
function take(update, messages) {
  switch (update.sessionUpdate) {
    case "user_message":
      messages.add(update.messageId);
      break;
    case "state_update":
      (summary.states[turn] ??= []).push(update.state);
      break;
    case "agent_message_chunk":
      summary.text[turn] = (summary.text[turn] ?? "") + update.content.text;
      break;
    case "tool_call_update":
      if (update.status) summary.toolCalls[update.toolCallId] = update.status;
      break;
    case "terminal_output_chunk":
      output[update.terminalId] = Buffer.concat([output[update.terminalId], Buffer.from(update.data, "base64")]);
      break;
    case "terminal_update":
      output[update.terminalId] ??= Buffer.alloc(0);
      if (update.exitStatus) {
        summary.terminals.push({ output: output[update.terminalId].toString(), exit: update.exitStatus.exitCode });
      }
      break;
  }
}

async function drive(agent) {
  const m = acp.methods.agent;
  const { protocolVersion, info } = await agent.request(m.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "interop-client-v2", version: "1.0.0" },
    capabilities: {},
  });
  if (protocolVersion !== acp.PROTOCOL_VERSION) throw new Error(`the agent speaks version ${protocolVersion}`);
  summary.agent = info.name;

  const session = await agent.buildSession(plan.root).start();
  const { sessionId } = session;
  for (turn of ["allow", "reject", "long"]) {
    const messages = new Set();
    const inserted = session.prompt(plan[turn]);
    let cancelled = false;
    for (;;) {
      const message = await session.nextUpdate();
      take(message.update, messages);
      if (message.kind === "stop") {
        summary.stopReasons[turn] = message.stopReason;
        break;
      }
      if (turn === "long" && !cancelled && message.update.sessionUpdate === "agent_message_chunk") {
        cancelled = true;
        await agent.notify(m.session.cancel, { sessionId });
      }
    }
    summary.echoed[turn] = messages.has((await inserted).messageId);
  }

  const { sessions } = await agent.request(m.session.list, {});
  summary.listed = sessions.some((s) => s.sessionId === sessionId && s.cwd === plan.root);
  await agent.request(m.session.close, { sessionId });
  replaying = true;
  await agent.request(m.session.resume, { sessionId, cwd: plan.root, replayFrom: { type: "start" } });
  replaying = false;
  await agent.request(m.session.close, { sessionId });
  try {
    await agent.request(m.session.resume, { sessionId: "no such session", cwd: plan.root });
  } catch (error) {
    summary.unknown = error.code;
  }
}

const { exit, failed } = await withAgent(agentCommand, log, (input, output) =>
  app.connectWith(acp.ndJsonStream(input, output), drive),
);
summary.exit = exit;
console.log(JSON.stringify(summary));
process.exitCode = failed ? 1 : 0;
