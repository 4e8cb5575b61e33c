// The agent's requests that wait for the user's answer.

import type { Fact, Method, Question, Row } from "./protocol";
import { Form } from "./form";
import type { Live } from "./live";
import { get, message, text } from "./model";
import type { Document, Json, Schema } from "./schema";
import { isObject } from "./schema";
import { add, brief, el, long } from "./text";

export class Questions {
  readonly element = el("section", { class: "questions", "aria-label": "Questions of the agent", role: "region" });
  private readonly cards = new Map<string, { element: HTMLElement; question: string }>();

  constructor(private readonly live: Live, private readonly method: (name: string) => Method | undefined, private readonly go: (n: number) => void) {}

  update(): void {
    const source = this.live.running;
    const asked = (row: Row): Question | undefined => source?.state?.questions?.find((q) => q.n === row.n);
    const open = [...(source?.open.values() ?? [])].filter((r) => r.to === source?.info.lanes[0] && (asked(r) || !this.served(r))).slice(0, 20);
    const keys = new Set(open.map((r) => `${source?.id} ${r.n}`));
    for (const [key, card] of this.cards) {
      if (keys.has(key)) continue;
      card.element.remove();
      this.cards.delete(key);
    }
    for (const row of open) {
      const key = `${source?.id} ${row.n}`;
      const question = asked(row);
      const [before, now] = [this.cards.get(key), JSON.stringify(question ?? null)];
      if (before?.question === now || (row.asks && !question)) continue;
      const element = this.card(row, question);
      if (!element) continue; // the message or the schema is still being fetched
      this.cards.set(key, { element, question: now });
      if (before) before.element.replaceWith(element);
      else this.element.append(element);
    }
    this.element.hidden = this.cards.size === 0;
  }

  /** Whether acp answers the request by itself. */
  private served(row: Row): boolean {
    const { answers = this.live.answers } = this.live.running?.state ?? {};
    const by = row.method?.startsWith("fs/") ? answers.fs : row.method?.startsWith("terminal/") ? answers.terminal : "ask";
    return by !== "ask";
  }

  private card(row: Row, question: Question | undefined): HTMLElement | undefined {
    const source = this.live.running;
    const line = source && this.live.link.line(source, row);
    if (line === undefined) return undefined; // it is still being fetched
    const params = get(message(line), "params");
    const card = el("article", { class: "question", "aria-label": `Request ${row.n}: ${brief(row.method ?? "", 100)}` });
    add(card, el("button", { type: "button", class: "link number", onclick: () => this.go(row.n) }, `#${row.n}`));
    const answer = (result: Json) => () => void this.live.respond(row, { result });
    if (question) {
      this.permission(card, row, question, params);
    } else if (row.method === "elicitation/create" && isObject(params)) {
      add(card, el("h3", {}, "The agent asks"), long("div", "asked", text(params, "message"), 2000));
      this.elicitation(card, params, answer);
    } else if (!this.other(card, row, line, answer)) {
      return undefined;
    }
    return card;
  }

  /** Draws a question, whose choices work when all of it has been visible for some time. */
  private permission(card: HTMLElement, row: Row, question: Question, params: Json | undefined): void {
    const pieces: HTMLElement[] = [];
    const draw = (fact: Fact): HTMLElement => {
      const parts = (fact.text.match(/[^]{1,300}/gu) ?? [""]).map((part) => el("span", {}, part));
      pieces.push(...parts);
      return el("div", { class: "fact" }, el("span", {}, fact.name), el("div", {}, ...parts));
    };
    const asks = { "fs/write_text_file": "to write a file on your machine", "terminal/create": "to run a command on your machine" }[row.method ?? ""];
    add(card, el("h3", {}, `The agent asks ${asks ?? "for permission"}`),
      el("div", { class: "facts" }, ...question.facts.map(draw), el("hr"), ...question.notes.map(draw)),
      asks && long("div", "asked code", JSON.stringify(params, undefined, 1), 20_000));
    const button = (words: string, index: number, mark = ""): HTMLButtonElement =>
      el("button", { type: "button", class: mark, disabled: true, onclick: () => void this.live.choose(row, index) }, words);
    const choices = question.choices.map((c, i) => button(c.text, i, c.contradicts ? "contradicts" : ""));
    const cancel = button("Cancelled", -1);
    add(card, el("div", { class: "actions" }, ...choices, cancel));
    const enable = (buttons: HTMLButtonElement[]): void => {
      setTimeout(() => buttons.forEach((b) => (b.disabled = false)), question.delay + 50);
    };
    whenSeen([cancel], () => enable([cancel, ...choices.filter((_, i) => question.choices[i]?.rejects)]));
    whenSeen(pieces, () => void this.live.seen(row).then(() => enable(choices)));
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

/** Calls a function when each of some elements has been visible. */
function whenSeen(elements: Element[], then: () => void): void {
  const unseen = new Set(elements);
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      unseen.delete(entry.target);
    }
    if (unseen.size > 0) return;
    observer.disconnect();
    then();
  });
  for (const element of elements) observer.observe(element);
}
