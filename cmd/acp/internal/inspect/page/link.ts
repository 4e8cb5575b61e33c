// The connection to the server, which is restored when it is lost. A report has none.

import type { Command, Hello, Log, Reply, Report, Row, ServerMessage } from "./protocol";
import type { Model, Source } from "./model";
import type { Schema } from "./schema";
import { Document } from "./schema";
import { el, say } from "./text";

export type LinkState = "connecting" | "connected" | "lost" | "refused" | "report";

type Unnumbered<T> = T extends { id: number } ? Omit<T, "id"> : never;

/** A command without its id. */
export type Order = Unnumbered<Command>;

export interface Link {
  state: LinkState;
  /** Sends a command and waits for its reply. */
  command(order: Order): Promise<Reply>;
  /** The schema of a protocol version, or undefined while it is not there. */
  schema(version: number): Document | undefined;
  /** The whole line of a row, or undefined while it is not there. It is fetched if the row has only its beginning. */
  line(source: Source, row: Row): string | undefined;
  /** Tries to connect at once. */
  retry(): void;
}

/** The largest line that is fetched without being asked for. */
const largest = 4_000_000;

/** Opens the report in this page, or connects to the server. */
export function open(model: Model): Link {
  const report = document.getElementById("report");
  return report ? new ReportLink(model, JSON.parse(report.textContent) as Report) : new ServerLink(model);
}

class ReportLink implements Link {
  state: LinkState = "report";
  private readonly schemas = new Map<number, Document>();

  constructor(model: Model, report: Report) {
    for (const [version, schema] of Object.entries(report.schemas)) {
      this.schemas.set(Number(version), new Document(schema as Schema));
    }
    const hello: Hello = report.hello;
    const log: Log = { is: "log", cursor: 0, caughtUp: true, events: report.events };
    for (const message of [hello, log, report.state]) model.receive(message);
  }

  command(): Promise<Reply> {
    return Promise.reject(new Error("a report has no agent"));
  }

  schema(version: number): Document | undefined {
    return this.schemas.get(version);
  }

  line(_source: Source, row: Row): string | undefined {
    return row.cut ? undefined : row.raw;
  }

  retry(): void {}
}

/** How long to wait before connecting again, in milliseconds: it doubles up to the second number. */
const [firstWait, longestWait] = [250, 5000];

/** Where a page keeps the secret for the time when it is loaded again. Unlike cookies, only this page of this port has it. */
const stored = "secret";

/** The page's secret, without which the server answers no request. */
let secret = "";
let entered = (): void => {};
const hasEntered = new Promise<void>((resolve) => (entered = resolve));

/** The code with which the server closes the connection of a page without a valid key. */
const refusal = 1008;

class ServerLink implements Link {
  state: LinkState = "connecting";
  private socket: WebSocket | undefined;
  private wait = firstWait;
  private timer = 0;
  private last = 0;
  private readonly waiting = new Map<number, (reply: Reply) => void>();
  private readonly schemas = new Map<number, Document | "loading">();
  private readonly lines = new Map<string, string | undefined>();
  private readonly keys = [location.hash.slice(1), sessionStorage.getItem(stored)].filter((k) => !!k);

  constructor(private readonly model: Model) {
    history.replaceState(null, "", location.pathname); // the token is valid once, and of no use in a bookmark
    addEventListener("hashchange", () => location.reload()); // another link of the same server
    this.connect();
  }

  retry(): void {
    if (this.state !== "lost") return;
    clearTimeout(this.timer);
    this.wait = firstWait;
    this.connect();
  }

  private connect(): void {
    const socket = new WebSocket(`ws://${location.host}/ws`);
    this.socket = socket;
    socket.onopen = () => {
      socket.send(JSON.stringify({ do: "attach", since: this.model.cursor, run: this.model.hello?.run ?? "", keys: this.keys }));
    };
    socket.onmessage = (event: MessageEvent<string>) => {
      if (this.state !== "connected") {
        this.wait = firstWait;
        this.become("connected");
      }
      const message = JSON.parse(event.data) as ServerMessage;
      if (message.is === "hello" && message.secret) {
        this.keys.splice(0, Infinity, (secret = message.secret));
        sessionStorage.setItem(stored, secret);
        entered();
      }
      if (message.is !== "reply") return this.model.receive(message);
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    };
    socket.onclose = (event) => {
      for (const [id, done] of this.waiting) done({ is: "reply", id, error: "The connection to acp was lost." });
      this.waiting.clear();
      if (event.code === refusal) return this.become("refused");
      this.become("lost");
      this.timer = window.setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(2 * this.wait, longestWait);
    };
  }

  private become(state: LinkState): void {
    this.state = state;
    this.model.changed("link");
  }

  command(order: Order): Promise<Reply> {
    const id = ++this.last;
    if (this.state !== "connected" || !this.socket) return Promise.resolve({ is: "reply", id, error: "There is no connection to acp." });
    this.socket.send(JSON.stringify({ ...order, id }));
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  schema(version: number): Document | undefined {
    const known = this.schemas.get(version);
    if (known === undefined) {
      this.schemas.set(version, "loading");
      void this.load(version);
    }
    return known === "loading" ? undefined : known;
  }

  line(source: Source, row: Row): string | undefined {
    if (!row.cut) return row.raw;
    if (row.size > largest) return undefined;
    const path = rowPath("/raw", source, row);
    const known = this.lines.get(path);
    if (known === undefined && !this.lines.has(path)) {
      for (const old of [...this.lines.keys()].slice(0, -30)) this.lines.delete(old);
      this.lines.set(path, undefined);
      remote(path).then((line) => {
        this.lines.set(path, line);
        this.model.changed("state");
      }, () => this.lines.delete(path)); // the next use tries again
    }
    return known;
  }

  private async load(version: number): Promise<void> {
    try {
      const response = await request(`/schema/${version}`);
      if (!response.ok) throw new Error(response.statusText);
      this.schemas.set(version, new Document((await response.json()) as Schema,
        async (pattern, text) => (await this.command({ do: "match", pattern, text })).sent !== "no"));
    } catch {
      this.schemas.delete(version); // the next use tries again
      return;
    }
    this.model.changed("hello");
  }
}

/** A path of the server about a row. */
export function rowPath(path: string, source: Source, row: Row): string {
  return `${path}?source=${encodeURIComponent(source.id)}&n=${row.n}`;
}

/** What the server answers to a path, once this page may ask it. */
export async function request(path: string): Promise<Response> {
  await hasEntered;
  return fetch(path, { headers: { Authorization: `Bearer ${secret}` } });
}

/** What the server answers to a path, as text. */
export async function remote(path: string): Promise<string> {
  const response = await request(path);
  const answer = await response.text();
  if (!response.ok) throw new Error(answer.trim() || response.statusText);
  return answer;
}

/** A button that downloads what the server has at a path. */
export function downloadButton(words: string, path: string): HTMLButtonElement {
  return el("button", { type: "button", class: "link", onclick: async () => {
    const response = await request(path);
    if (!response.ok) return say(await response.text());
    const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? "export";
    const link = el("a", { href: URL.createObjectURL(await response.blob()), download: name });
    link.click();
    URL.revokeObjectURL(link.href);
  } }, words);
}
