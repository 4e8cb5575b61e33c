// What the page knows: the sources, their rows and conversations, as a function of the server's messages.

import type { Event, Finding, Hello, Item, Row, ServerMessage, Source as SourceInfo, SourceState } from "./protocol";
import type { Json } from "./schema";
import { isObject } from "./schema";

/** One connection: a live one, a recording, or a run of the probe. */
export class Source {
  readonly rows: Row[] = [];
  /** The conversation of each session, with its items by their indexes. */
  readonly items = new Map<string, Map<number, Item>>();
  /** The response of each request that has one. */
  readonly answers = new Map<number, number>();
  /** The requests that wait for an answer, by number. */
  readonly open = new Map<number, Row>();
  readonly methods = new Map<string, number>();
  readonly sessions = new Map<string, number>();
  /** The newest row that says something about a session: how it was opened, its mode, options and commands. */
  readonly told = new Map<string, Map<string, Row>>();
  /** The titles of the sessions that agents have created for a part of their work. */
  readonly subagents = new Map<string, string>();
  /** The rows with findings, in order. */
  readonly found: number[] = [];
  state: SourceState | undefined;

  constructor(readonly info: SourceInfo) {}

  get id(): string {
    return this.info.source;
  }

  row(n: number): Row | undefined {
    return this.rows[n - 1];
  }

  /** The last request of a method that is open, such as the prompt of a session. */
  pending(method: string, session?: string): Row | undefined {
    return [...this.open.values()].findLast((r) => r.method === method && (session === undefined || r.session === session));
  }

  add(row: Row): void {
    this.rows.push(row);
    if (row.kind === "request") this.open.set(row.n, row);
    if (row.re !== undefined) {
      this.answers.set(row.re, row.n);
      this.open.delete(row.re);
    }
    if (row.kind === "end") this.open.clear();
    for (const name of [row.method, row.update]) if (name !== undefined) increment(this.methods, name);
    if (row.session !== undefined) increment(this.sessions, row.session);
    if (row.findings) this.found.push(row.n);
    if (row.update === "subagent_update") {
      const update = get(message(row.raw), "params", "update");
      const session = text(update, "sessionId");
      this.subagents.set(session, text(update, "title") || (this.subagents.get(session) ?? ""));
    }
    const about = subject(row);
    if (about !== undefined && row.session !== undefined) {
      const told = this.told.get(row.session) ?? new Map<string, Row>();
      this.told.set(row.session, told.set(about, row));
    }
  }

  late(n: number, finding: Finding): void {
    const row = this.row(n);
    if (!row) return;
    (row.findings ??= []).push(finding);
    if (!this.found.includes(n)) {
      this.found.push(n);
      this.found.sort((a, b) => a - b);
    }
  }

  item(event: Item): void {
    const items = this.items.get(event.session) ?? new Map<number, Item>();
    this.items.set(event.session, items);
    const before = items.get(event.index);
    const text = (event.text ?? before?.text ?? "") + (event.append ?? "");
    items.set(event.index, { ...before, ...event, text });
  }
}

/** What a row says about its session. */
function subject(row: Row): string | undefined {
  if (row.kind === "response" && /^session\/(new|load|resume|fork)$/.test(row.method ?? "")) return "opened";
  if (row.kind === "response" && row.method === "session/set_config_option") return "config_option_update";
  return row.update?.match(/^(current_mode_update|config_option_update|available_commands_update|session_info_update)$/)?.[0];
}

/** The connections of one file that form a chain, from the client through proxies to the agent, as one diagram. */
export class Chain extends Source {
  constructor(readonly parts: Source[]) {
    const [first] = parts;
    if (!first) throw new Error("a chain has parts");
    super({ ...first.info, source: parts.map((p) => p.id).join("+"), name: base(first), lanes: [...first.info.lanes, ...parts.slice(1).flatMap((p) => p.info.lanes.slice(1))] });
    for (const row of parts.flatMap((p) => p.rows).sort((a, b) => a.t - b.t)) {
      this.rows.push(row);
      for (const name of [row.method, row.update]) if (name !== undefined) increment(this.methods, name);
      if (row.session !== undefined) increment(this.sessions, row.session);
    }
  }
}

/** The name of the file of a source, in which there may be several. */
function base(source: Source): string {
  return source.info.name.replace(/, [^,]*$/, "");
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

export type Change = "hello" | "sources" | "rows" | "late" | "items" | "state" | "link";

export class Model {
  hello: Hello | undefined;
  readonly sources: Source[] = [];
  readonly chains: Chain[] = [];
  caughtUp = false;
  cursor = 0;
  private readonly listeners = new Set<(changes: Set<Change>) => void>();
  private changes = new Set<Change>();
  private frame = 0;

  source(id: string): Source | undefined {
    return this.sources.find((s) => s.id === id);
  }

  /** Calls a function after changes, until the function that it returns is called. */
  onChange(listener: (changes: Set<Change>) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Tells the listeners before the next frame. */
  changed(change: Change): void {
    this.changes.add(change);
    this.frame ||= window.setTimeout(() => {
      this.frame = 0;
      const changes = this.changes;
      this.changes = new Set();
      for (const listener of this.listeners) listener(changes);
    }, 16);
  }

  receive(message: ServerMessage): void {
    switch (message.is) {
      case "hello":
        if (this.hello && this.hello.run !== message.run) this.forget();
        this.hello = message;
        this.changed("hello");
        break;
      case "log":
        this.cursor = message.cursor;
        for (const event of message.events) this.event(event);
        if (message.caughtUp && !this.caughtUp) this.chain();
        this.caughtUp = message.caughtUp;
        this.changed("rows");
        break;
      case "state":
        for (const state of message.sources) {
          const source = this.source(state.source);
          if (source) source.state = state;
        }
        this.changed("state");
        break;
    }
  }

  /** Joins the files whose connections form a chain. */
  private chain(): void {
    const files = this.sources.filter((s) => s.info.kind === "file" && s.rows.every((r) => r.t >= 0));
    for (const first of files.filter((s) => s.info.lanes[0] === "client")) {
      const parts = [first];
      for (let last: Source | undefined = first; last;) {
        const end: string | undefined = last.info.lanes.at(-1);
        last = files.find((s) => base(s) === base(first) && s.info.lanes[0] === end && !parts.includes(s));
        if (last) parts.push(last);
      }
      if (parts.length > 1) this.chains.push(new Chain(parts));
    }
    if (this.chains.length > 0) this.changed("sources");
  }

  /** What can be shown in a timeline. */
  get diagrams(): Source[] {
    return [...this.chains, ...this.sources];
  }

  private forget(): void {
    this.sources.length = this.chains.length = 0;
    this.caughtUp = false;
    this.cursor = 0;
    this.changed("sources");
  }

  event(event: Event): void {
    switch (event.is) {
      case "source":
        this.sources.push(new Source(event));
        this.changed("sources");
        break;
      case "row":
        this.source(event.source)?.add(event);
        this.changed("rows");
        break;
      case "late":
        this.source(event.source)?.late(event.n, event.finding);
        this.changed("late");
        break;
      case "item":
        this.source(event.source)?.item(event);
        this.changed("items");
        break;
    }
  }
}

/** A line as a message, or undefined if it is none. */
export function message(line: string | undefined): { [name: string]: Json } | undefined {
  try {
    const value = JSON.parse(line ?? "") as Json;
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The value at the end of a path of names, or undefined. */
export function get(value: Json | undefined, ...path: string[]): Json | undefined {
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** The value at the end of the tokens of a JSON pointer, or undefined. */
export function pointed(value: Json | undefined, tokens: string[]): Json | undefined {
  for (const token of tokens) {
    const name = token.replace(/~1/g, "/").replace(/~0/g, "~");
    value = Array.isArray(value) ? value[Number(name)] : get(value, name);
  }
  return value;
}

export function text(value: Json | undefined, ...path: string[]): string {
  const found = get(value, ...path);
  return typeof found === "string" ? found : "";
}

export function list(value: Json | undefined, ...path: string[]): Json[] {
  const found = get(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The worst level of findings, as a word of the page's styles. */
export function severity(findings: Finding[] | undefined): "must" | "should" | "advice" | "" {
  if (!findings || findings.length === 0) return "";
  if (findings.some((f) => f.level.startsWith("MUST"))) return "must";
  return findings.some((f) => f.level.startsWith("SHOULD")) ? "should" : "advice";
}

/** What a row says, in a few words. */
export function summary(row: Row): string {
  if (row.kind === "gap" || row.kind === "end") return row.text ?? "";
  if (row.kind === "stderr" || row.kind === "invalid") return row.raw;
  const m = row.cut ? undefined : message(row.raw);
  if (!m) return row.raw;
  if (row.kind === "error") return `${JSON.stringify(get(m, "error", "code") ?? null)} ${text(m, "error", "message")}`;
  const body = m[row.kind === "response" ? "result" : "params"];
  const update = get(body, "update");
  if (update !== undefined) return updateText(update);
  if (row.method === "session/prompt" && row.kind === "request") return list(body, "prompt").map(blockText).join(" ");
  if (row.method === "session/request_permission" && row.kind === "request") {
    return text(body, "toolCall", "title") || text(body, "toolCall", "toolCallId");
  }
  if (!isObject(body)) return body === undefined ? "" : JSON.stringify(body);
  return Object.entries(body)
    .filter(([name]) => name !== "sessionId" || row.kind === "response")
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : isObject(value) ? "{…}" : Array.isArray(value) ? `[${value.length}]` : String(value)}`)
    .join(", ");
}

function updateText(update: Json): string {
  const content = get(update, "content");
  const title = [text(update, "title"), text(update, "status")].filter(Boolean).join(" · ");
  if (title) return title;
  if (content !== undefined && !Array.isArray(content)) return blockText(content);
  const entries = list(update, "entries");
  if (entries.length > 0) return entries.map((e) => text(e, "content")).join("; ");
  return text(update, "currentModeId") || text(update, "toolCallId") || JSON.stringify(update);
}

export function blockText(block: Json): string {
  const uri = text(block, "uri") || text(block, "resource", "uri");
  return text(block, "text") || (uri && `[${uri}]`) || `[${text(block, "type")}]`;
}
