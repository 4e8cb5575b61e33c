// The agent's requests that wait for the user's answer.

import type { Method, Row } from "./protocol";
import { Form } from "./form";
import type { Live } from "./live";
import { get, list, message, text } from "./model";
import type { Document, Json, Schema } from "./schema";
import { isObject } from "./schema";
import { add, brief, el, long } from "./text";

export class Questions {
  readonly element = el("section", { class: "questions", "aria-label": "Questions of the agent", role: "region" });
  private readonly cards = new Map<string, HTMLElement>();

  constructor(private readonly live: Live, private readonly method: (name: string) => Method | undefined, private readonly go: (n: number) => void) {}

  update(): void {
    const source = this.live.running;
    const open = [...(source?.open.values() ?? [])].filter((r) => r.to === source?.info.lanes[0] && !this.served(r)).slice(0, 20);
    const keys = new Set(open.map((r) => `${source?.id} ${r.n}`));
    for (const [key, card] of this.cards) {
      if (keys.has(key)) continue;
      card.remove();
      this.cards.delete(key);
    }
    for (const row of open) {
      const key = `${source?.id} ${row.n}`;
      if (this.cards.has(key)) continue;
      const card = this.card(row);
      if (!card) continue; // the message or the schema is still being fetched
      this.cards.set(key, card);
      this.element.append(card);
    }
    this.element.hidden = this.cards.size === 0;
  }

  /** Whether acp answers the request by itself. */
  private served(row: Row): boolean {
    return this.by(row) !== "ask" && !this.waits(row);
  }

  /** Whether acp answers the request once the user consents. */
  private waits(row: Row): boolean {
    return this.live.consents && this.by(row) === "folder" && (row.method === "fs/write_text_file" || row.method === "terminal/create");
  }

  private by(row: Row): string {
    const { answers = this.live.answers } = this.live.running?.state ?? {};
    return row.method?.startsWith("fs/") ? answers.fs : row.method?.startsWith("terminal/") ? answers.terminal : "ask";
  }

  private card(row: Row): HTMLElement | undefined {
    const source = this.live.running;
    const line = source && this.live.link.line(source, row);
    if (line === undefined) return undefined; // it is still being fetched
    const params = get(message(line), "params");
    const card = el("article", { class: "question", "aria-label": `Request ${row.n}: ${brief(row.method ?? "", 100)}` });
    add(card, el("button", { type: "button", class: "link number", onclick: () => this.go(row.n) }, `#${row.n}`));
    const answer = (result: Json) => () => void this.live.respond(row, { result });
    if (row.method === "session/request_permission" && isObject(params)) {
      const outcome = (value: Json): (() => void) => answer({ outcome: value });
      add(card, el("h3", {}, "The agent asks for permission"), long("div", "asked", text(params, "toolCall", "title") || text(params, "toolCall", "toolCallId"), 500));
      const buttons = el("div", { class: "actions" });
      for (const option of list(params, "options")) {
        const id = text(option, "optionId");
        add(buttons, el("button", { type: "button", class: text(option, "kind").startsWith("allow") ? "primary" : "", title: brief(text(option, "kind"), 100),
          onclick: outcome({ outcome: "selected", optionId: id }) }, brief(text(option, "name") || id, 200)));
      }
      add(buttons, el("button", { type: "button", onclick: outcome({ outcome: "cancelled" }) }, "Cancelled"));
      card.append(buttons);
    } else if (row.method === "elicitation/create" && isObject(params)) {
      add(card, el("h3", {}, "The agent asks"), long("div", "asked", text(params, "message"), 2000));
      this.elicitation(card, params, answer);
    } else if (this.waits(row)) {
      const consent = (allow: boolean) => () => void this.live.consent(row, allow);
      add(card, el("h3", {}, row.method === "terminal/create" ? "The agent asks to run a command on your machine" : "The agent asks to write a file on your machine"),
        long("div", "asked code", JSON.stringify(params, undefined, 1), row.method === "terminal/create" ? Infinity : 20_000),
        el("div", { class: "actions" }, el("button", { type: "button", onclick: consent(true) }, row.method === "terminal/create" ? "Run it once" : "Write it once"),
          el("button", { type: "button", onclick: consent(false) }, "Reject")));
    } else if (!this.other(card, row, line, answer)) {
      return undefined;
    }
    return card;
  }

  private elicitation(card: HTMLElement, params: Json, answer: (result: Json) => () => void): void {
    const url = text(params, "url");
    const schema = get(params, "requestedSchema");
    const buttons = el("div", { class: "actions" });
    const { document } = this.live;
    if (isObject(schema) && document) {
      const form = new Form(document, { type: "object", ...schema } as Schema, undefined, { suggestions: {}, defaults: true });
      card.append(form.element);
      add(buttons, el("button", { type: "button", class: "primary", onclick: async () => {
        await document.pending();
        if (form.check()) answer({ action: "accept", content: form.value() })();
      } }, "Accept"));
    } else {
      if (url) {
        add(card, el("p", { class: "address" }, url), /^https?:\/\//.test(url) && el("p", {},
          "It leads to ", el("strong", {}, host(url)), ". ", el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, "Open it")));
      }
      add(buttons, el("button", { type: "button", class: "primary", onclick: answer({ action: "accept" }) }, "Accept"));
    }
    add(buttons, el("button", { type: "button", onclick: answer({ action: "decline" }) }, "Decline"),
      el("button", { type: "button", onclick: answer({ action: "cancel" }) }, "Cancel"));
    card.append(buttons);
  }

  /** Any other request: a form for its result. */
  private other(card: HTMLElement, row: Row, line: string, answer: (result: Json) => () => void): boolean {
    const method = this.method(row.method ?? "");
    const document: Document | undefined = this.live.document;
    if (!document) return false;
    const schema = method && document.definition(method.result);
    add(card, el("h3", {}, brief(row.method ?? "", 100)), long("div", "asked code", line, 500));
    const form = new Form(document, schema ?? {}, schema ? undefined : {}, { suggestions: {} });
    const error = el("input", { type: "text", value: "Internal error", "aria-label": "Error message" });
    add(card, form.element, el("div", { class: "actions" },
      el("button", { type: "button", class: "primary", onclick: () => answer(form.value())() }, "Respond"),
      error, el("button", { type: "button", onclick: () => void this.live.respond(row, { error: { code: -32603, message: error.value } }) }, "Respond with an error")));
    return true;
  }

}

/** The host of an address as it is looked up: letters that look like others are in punycode. */
function host(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return "an address that cannot be read";
  }
}
