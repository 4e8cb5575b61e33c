// The connection to the server, which is restored when it is lost. A report has none.

import type { Command, Hello, Log, Reply, Report, ServerMessage } from "./protocol";
import type { Model } from "./model";
import type { Schema } from "./schema";
import { Document } from "./schema";

export type LinkState = "connecting" | "connected" | "lost" | "report";

type Unnumbered<T> = T extends { id: number } ? Omit<T, "id"> : never;

/** A command without its id. */
export type Order = Unnumbered<Command>;

export interface Link {
  state: LinkState;
  /** Sends a command and waits for its reply. */
  command(order: Order): Promise<Reply>;
  /** The schema of a protocol version, or undefined while it is not there. */
  schema(version: number): Document | undefined;
  /** Tries to connect at once. */
  retry(): void;
}

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

  retry(): void {}
}

/** How long to wait before connecting again, in milliseconds: it doubles up to the second number. */
const [firstWait, longestWait] = [250, 5000];

class ServerLink implements Link {
  state: LinkState = "connecting";
  private socket: WebSocket | undefined;
  private wait = firstWait;
  private timer = 0;
  private last = 0;
  private readonly waiting = new Map<number, (reply: Reply) => void>();
  private readonly schemas = new Map<number, Document | "loading">();

  constructor(private readonly model: Model) {
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
      socket.send(JSON.stringify({ do: "attach", since: this.model.cursor, run: this.model.hello?.run ?? "" }));
    };
    socket.onmessage = (event: MessageEvent<string>) => {
      if (this.state !== "connected") {
        this.wait = firstWait;
        this.become("connected");
      }
      const message = JSON.parse(event.data) as ServerMessage;
      if (message.is !== "reply") return this.model.receive(message);
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    };
    socket.onclose = () => {
      for (const [id, done] of this.waiting) done({ is: "reply", id, error: "The connection to acp was lost." });
      this.waiting.clear();
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

  private async load(version: number): Promise<void> {
    try {
      const response = await fetch(`/schema/${version}`);
      if (!response.ok) throw new Error(response.statusText);
      this.schemas.set(version, new Document((await response.json()) as Schema));
    } catch {
      this.schemas.delete(version); // the next use tries again
      return;
    }
    this.model.changed("hello");
  }
}
