// Talking to the agent: what all controls for that share.

import type { Answers, Reply, Row } from "./protocol";
import type { Link, Order } from "./link";
import type { Model, Source } from "./model";
import { get, list, message, text } from "./model";
import type { Document, Json } from "./schema";
import { isObject } from "./schema";
import { brief, say } from "./text";

export class Live {
  /** The session to which prompts go. */
  session = "";
  /** How the messages that the user sends are treated on their way. */
  /** What the next initialize claims. */
  capabilities: Json = capabilities(1);
  version = 1;
  answers: Answers = { fs: "memory", terminal: "memory" };

  constructor(private readonly model: Model, readonly link: Link) {}

  get possible(): boolean {
    return this.model.hello?.live === true;
  }

  /** The agent that was started last, or undefined. */
  get source(): Source | undefined {
    return this.model.sources.findLast((s) => s.info.kind === "agent");
  }

  get running(): Source | undefined {
    const { source } = this;
    return source && source.rows.at(-1)?.kind !== "end" && source.state?.open !== false ? source : undefined;
  }

  get document(): Document | undefined {
    return this.link.schema(this.running?.state?.version === 2 ? 2 : this.version);
  }

  /** Whether there is a turn to cancel. In version 2 the answer to a prompt does not end it. */
  get busy(): boolean {
    const { running } = this;
    return running !== undefined && this.session !== "" && (running.state?.version === 2 || running.pending("session/prompt", this.session) !== undefined);
  }

  get folder(): string {
    return this.model.hello?.cwd || this.model.hello?.folder || "/";
  }

  /** The agent's sessions, oldest first. */
  get sessions(): string[] {
    return [...(this.running?.told.entries() ?? [])].filter(([, told]) => told.has("opened")).map(([id]) => id);
  }

  /** Values for the members of forms. */
  get suggestions(): Record<string, Json> {
    const values: Record<string, Json> = {
      cwd: this.folder, mcpServers: [], protocolVersion: this.version, clientCapabilities: this.capabilities, capabilities: this.capabilities,
      clientInfo: { name: "acp inspect", version: this.model.hello?.version || "0" },
      info: { name: "acp inspect", version: this.model.hello?.version || "0" },
      prompt: [{ type: "text", text: "Hello" }],
    };
    if (this.session) values["sessionId"] = this.session;
    const source = this.running;
    const methods = list(this.answer(source, "initialize"), "authMethods");
    const method = text(methods[0], "id") || text(methods[0], "methodId");
    if (method) values["methodId"] = method;
    const modes = this.modes();
    if (modes) values["modeId"] = modes.current;
    const option = this.options()[0];
    if (option !== undefined) values["configId"] = text(option, "id") || text(option, "configId");
    const open = [...(source?.open.values() ?? [])].findLast((r) => r.from === source?.info.lanes[0]);
    if (open?.id !== undefined) values["requestId"] = JSON.parse(open.id) as Json;
    return values;
  }

  /** The result of the last request of a method. */
  answer(source: Source | undefined, method: string): Json | undefined {
    const row = source?.rows.findLast((r) => r.kind === "response" && r.method === method);
    return source && row && message(this.link.line(source, row))?.["result"];
  }

  modes(): { current: string; all: Json[] } | undefined {
    const told = this.running?.told.get(this.session);
    const modes = get(this.body(told?.get("opened")), "modes");
    if (!isObject(modes)) return undefined;
    const now = text(this.body(told?.get("current_mode_update")), "currentModeId");
    return { current: now || text(modes, "currentModeId"), all: list(modes, "availableModes") };
  }

  /** The configuration options of the session. */
  options(): Json[] {
    const told = this.running?.told.get(this.session);
    const rows = [told?.get("opened"), told?.get("config_option_update")].filter((r): r is Row => r !== undefined);
    const newest = rows.sort((a, b) => b.n - a.n).find((r) => list(this.body(r), "configOptions").length > 0);
    return list(this.body(newest), "configOptions");
  }

  /** What a response or an update says about a session. */
  private body(row: Row | undefined): Json | undefined {
    const source = this.running;
    const m = source && row && message(this.link.line(source, row));
    return get(m, "result") ?? get(m, "params", "update");
  }

  /** Sends a command, and tells the user if it fails. */
  async command(order: Order): Promise<Reply> {
    const reply = await this.link.command(order);
    if (reply.error) say(reply.error);
    return reply;
  }

  async send(method: string, params: Json, notification = false): Promise<Reply> {
    const source = this.running;
    if (!source) {
      say("The agent is not running.");
      return { is: "reply", id: 0, error: "The agent is not running." };
    }
    return this.command({ do: "send", source: source.id, method, params, notification });
  }

  async line(line: string): Promise<Reply> {
    const source = this.running;
    if (!source) {
      say("The agent is not running.");
      return { is: "reply", id: 0, error: "The agent is not running." };
    }
    return this.command({ do: "raw", source: source.id, line });
  }

  /** Answers a request of the agent. */
  async respond(request: Row, body: { result: Json } | { error: Json }): Promise<Reply> {
    return this.line(`{"jsonrpc":"2.0","id":${request.id ?? "null"},${JSON.stringify(body).slice(1)}`);
  }

  /** Tells the server that a question is visible as a whole. */
  async seen(request: Row): Promise<void> {
    const source = this.running;
    if (source) await this.command({ do: "seen", source: source.id, row: request.n });
  }

  /** Answers a question with an option; -1 says that the turn was cancelled. */
  async choose(request: Row, option: number): Promise<void> {
    const source = this.running;
    if (source) await this.command({ do: "choose", source: source.id, row: request.n, option });
  }

  /** Starts the agent. */
  async start(): Promise<boolean> {
    const before = this.source;
    const reply = await this.command({ do: "start" });
    if (reply.error) return false;
    this.session = "";
    await this.until(() => this.source !== before && this.running !== undefined);
    const source = this.running;
    if (source) await this.command({ do: "answers", source: source.id, answers: this.answers });
    return source !== undefined;
  }

  /** Starts the agent if necessary, and opens a session. It reports whether there is one. */
  async open(): Promise<boolean> {
    if (!this.running && !(await this.start())) return false;
    if (!this.running?.methods.has("initialize") && !(await this.ask("initialize", this.example("initialize")))) return false;
    const opened = await this.ask("session/new", this.example("session/new"));
    if (!opened) return false;
    this.session = text(opened, "sessionId");
    this.model.changed("sources");
    return this.session !== "";
  }

  /** A value for the parameters of a method. */
  example(method: string): Json {
    const { document } = this;
    const params = this.model.hello?.methods.find((m) => m.method === method && m.version === (this.running?.state?.version === 2 ? 2 : this.version))?.params;
    const schema = params && document?.definition(params);
    if (!document || !schema) return {};
    const { suggestions } = this;
    const value = document.example(schema, suggestions);
    if (method === "initialize" && isObject(value)) {
      for (const name of document.flatten(schema).properties.keys()) {
        const suggested = suggestions[name];
        if (suggested !== undefined) value[name] = suggested;
      }
    }
    return value;
  }

  /** Sends a request and waits for its result; undefined if it failed. */
  async ask(method: string, params: Json): Promise<Json | undefined> {
    const source = this.running;
    const reply = await this.send(method, params);
    if (reply.error || !source) return undefined;
    let answer: Row | undefined;
    await this.until(() => {
      answer = source.rows.findLast((r) => r.re !== undefined && r.method === method && r.id === reply.sent && r.to === source.info.lanes[0]);
      return answer !== undefined || source.rows.at(-1)?.kind === "end";
    });
    if (!answer) {
      say(`The agent ended before it answered ${method}.`);
      return undefined;
    }
    let line: string | undefined;
    await this.until(() => (line = answer && this.link.line(source, answer)) !== undefined);
    const m = message(line);
    if (answer.kind === "error") say(`${method} failed: ${brief(text(m, "error", "message"), 300)}`);
    return answer.kind === "response" ? m?.["result"] : undefined;
  }

  /** Waits for a condition that messages of the server make true. */
  private until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.model.onChange(() => check());
      const check = (): void => {
        if (!condition()) return;
        stop();
        resolve();
      };
      check();
    });
  }

  /** Cancels the turn of the session. The server then answers its permission requests, as the protocol demands. */
  async cancel(): Promise<void> {
    await this.send("session/cancel", { sessionId: this.session }, true);
  }
}

/** What the client claims at first. */
export function capabilities(version: number): Json {
  const elicitation = { form: {}, url: {} };
  if (version !== 1) return { elicitation };
  return {
    fs: { readTextFile: true, writeTextFile: true }, terminal: true, elicitation,
    session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
  };
}
