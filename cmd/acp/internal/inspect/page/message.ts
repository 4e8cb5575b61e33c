// The message that is selected: its JSON with descriptions, its bytes, and the findings about it.

import type { Finding, Hello, Method, Row } from "./protocol";
import type { Node } from "./json";
import { parse } from "./json";
import type { Link } from "./link";
import { remote, request, rowPath } from "./link";
import type { Source } from "./model";
import { message, pointed, severity } from "./model";
import type { Schema } from "./schema";
import { kindWord, label } from "./timeline";
import { Tree } from "./tree";
import { add, brief, bytes, copyButton, count, duration, el, long, plural, put, set } from "./text";

export interface MessageEvents {
  go(source: Source, n: number): void;
  /** Puts a copy of the message into the form for sending. */
  edit(source: Source, row: Row): void;
}

const envelope = {
  jsonrpc: "The version of JSON-RPC, always 2.0.",
  id: "The id that joins a request to its response. A notification has none.",
  method: "What the receiver shall do.",
  params: "The parameters of the method.",
  result: "The result of the request.",
  error: "Why the request failed.",
};

/** How many bytes are shown in hexadecimal at first. */
const dumped = 4096;

export class MessagePane {
  readonly element = el("div", { class: "message-pane" });
  private tree: Tree | undefined;
  private source: Source | undefined;
  private row: Row | undefined;
  private drawn = "";

  constructor(private readonly link: Link, private readonly hello: () => Hello | undefined, private readonly events: MessageEvents) {
    this.show(undefined, undefined);
  }

  show(source: Source | undefined, row: Row | undefined): void {
    this.source = source;
    this.row = row;
    this.drawn = "";
    this.update();
  }

  /** Draws again if what is known about the message has changed. */
  update(): void {
    const { source, row } = this;
    if (!source || !row) {
      set(this.element, el("p", { class: "empty" }, "Choose a message in the timeline."));
      return;
    }
    const answer = source.answers.get(row.n);
    const document = this.link.schema(this.version(source));
    const key = [row.findings?.length ?? 0, answer, Boolean(document), this.link.line(source, row) !== undefined].join();
    if (key === this.drawn) return;
    this.drawn = key;
    set(this.element, this.heading(source, row, answer), this.actions(source, row));
    if (row.findings) this.element.append(this.cards(source, row, row.findings));
    this.element.append(this.body(source, row));
  }

  focus(): void {
    (this.element.querySelector<HTMLElement>("[role=treeitem][tabindex='0']") ?? this.element.querySelector<HTMLElement>("button"))?.focus();
  }

  private version(source: Source): number {
    return source.state?.version === 2 ? 2 : 1;
  }

  private heading(source: Source, row: Row, answer: number | undefined): HTMLElement {
    const facts = [
      row.to ? `${row.from} → ${row.to}` : row.from, kindWord(row), row.id !== undefined && `id ${row.id}`,
      row.t >= 0 && `at ${(row.t / 1000).toFixed(3)} s`, row.delay !== undefined && `after ${duration(row.delay)}`,
      bytes(row.size), row.auto && "answered by acp",
    ].filter((fact): fact is string => typeof fact === "string" && fact !== "");
    const heading = el("header", {}, el("h2", {}, `${row.n} · ${brief(label(row), 200)}`), el("p", { class: "facts" }, brief(facts.join(" · "), 1000)));
    const partner = row.re ?? answer;
    if (partner !== undefined) {
      heading.append(this.rowLink(source, partner, row.re === undefined ? "its response" : "its request"));
    } else if (row.kind === "request") {
      heading.append(el("span", { class: "unanswered" }, "no response"));
    }
    return heading;
  }

  private rowLink(source: Source, n: number, words: string): HTMLElement {
    return el("button", { type: "button", class: "link", onclick: () => this.events.go(source, n) }, `${words}: ${n}`);
  }

  private actions(source: Source, row: Row): HTMLElement {
    const bar = el("div", { class: "actions", role: "toolbar", "aria-label": "Copy" });
    if (row.kind === "gap" || row.kind === "end") return bar;
    const server = this.link.state !== "report";
    add(bar, copyButton("Copy JSON", () => row.cut && server ? remote(rowPath("/raw", source, row)) : row.raw));
    if (this.hello()?.live && row.kind !== "stderr") {
      add(bar, el("button", { type: "button", onclick: () => this.events.edit(source, row) }, "Edit and send"));
    }
    return bar;
  }

  private cards(source: Source, row: Row, findings: Finding[]): HTMLElement {
    const cards = el("section", { class: "cards", "aria-label": "Findings" });
    for (const finding of findings.slice(0, 50)) {
      const rule = this.hello()?.rules.find((r) => r.id === finding.rule);
      const card = el("article", { class: `card ${severity([finding])}` });
      add(card, el("h3", {}, `${finding.level} · ${finding.rule}`, el("span", { class: "by" }, ` broken by the ${finding.side}`)), long("div", "finding-text", finding.message, 600));
      if (rule) add(card, el("p", { class: "requirement" }, rule.text, " ", address(rule.url)));
      if (finding.pointer || finding.definition) {
        add(card, el("p", {}, "At ", finding.pointer
          ? el("button", { type: "button", class: "link code", onclick: () => this.tree?.show(finding.pointer) }, brief(finding.pointer, 300)) : "the message",
        finding.definition && `, a ${brief(finding.definition, 100)}`));
      }
      for (const evidence of finding.evidence) {
        add(card, el("p", { class: "evidence" }, "Evidence: ", evidence.n ? this.rowLink(source, evidence.n, evidence.why || "message") : evidence.why, " ",
          el("code", {}, brief(evidence.excerpt, 300))));
      }
      const [at, corrected] = this.corrected(source, row, finding);
      if (corrected) card.append(example(`A correct example: ${brief(at, 200)} of this message`, corrected, true));
      if (rule?.right) card.append(example(corrected ? "An example of the requirement" : "A correct example", rule.right, !corrected));
      if (rule?.wrong) card.append(example("An example of the fault", rule.wrong, false));
      cards.append(card);
    }
    if (findings.length > 50) cards.append(el("p", {}, `… and ${count(findings.length - 50)} more`));
    return cards;
  }

  private body(source: Source, row: Row): HTMLElement {
    const body = el("section", { class: "body" });
    this.tree = undefined;
    if (row.kind === "gap" || row.kind === "end") {
      body.append(long("pre", "text", row.text ?? ""));
      return body;
    }
    const line = this.link.line(source, row);
    let root: Node | undefined;
    if (line !== undefined && row.kind !== "stderr") {
      try {
        root = parse(line);
      } catch {
        root = undefined;
      }
    }
    if (root && line !== undefined) {
      this.tree = new Tree(line, root, {
        document: this.link.schema(this.version(source)),
        schemas: this.schemas(source, row), findings: row.findings ?? [], descriptions: envelope,
      });
      body.append(this.tree.element);
    } else if (row.kind !== "stderr") {
      add(body, el("p", { class: "note" }, line === undefined ? `The message has ${bytes(row.size)}. This is its beginning.` : "This is not JSON."));
    }
    const raw = el("details", { open: !root }, el("summary", {}, "As it was written"));
    raw.append(long("pre", "text", line ?? row.raw));
    if (line === undefined && this.link.state !== "report") raw.append(this.whole(source, row));
    body.append(raw, this.dump(source, row));
    return body;
  }

  /** Fetches a message that the row has only the beginning of. */
  private whole(source: Source, row: Row): HTMLElement {
    const button = el("button", { type: "button", onclick: async () => {
      button.disabled = true;
      try {
        const all = await remote(rowPath("/raw", source, row));
        button.replaceWith(long("pre", "text", all));
      } catch (error) {
        button.replaceWith(el("p", {}, String(error)));
      }
    } }, `Show all of it (${bytes(row.size)})`);
    return button;
  }

  private dump(source: Source, row: Row): HTMLElement {
    const details = el("details", {}, el("summary", {}, `Bytes (${plural(row.size, "byte")})`));
    details.addEventListener("toggle", async () => {
      if (!details.open || details.childElementCount > 1) return;
      let data: Uint8Array;
      if (this.link.state !== "report") {
        const response = await request(rowPath("/raw", source, row));
        data = new Uint8Array(await response.arrayBuffer());
      } else {
        data = new TextEncoder().encode(row.raw);
        if (row.bytes) details.append(el("p", { class: "note" }, "The report does not have the bytes that are not UTF-8."));
      }
      let shown = 0;
      const pre = el("pre", { class: "text hex" });
      const more = el("button", { type: "button", class: "more", onclick: () => extend() });
      const extend = (): void => {
        put(pre, hex(data.subarray(shown, shown + dumped), shown));
        shown += dumped;
        set(more, `… ${bytes(data.length - shown)} more`);
        more.hidden = shown >= data.length;
      };
      extend();
      details.append(pre, more);
    });
    return details;
  }

  /** What contains the value at fault, corrected, and its pointer; "" if the schema does not tell what would be right. */
  private corrected(source: Source, row: Row, finding: Finding): [string, string] {
    const none: [string, string] = ["", ""];
    const line = this.link.line(source, row);
    const document = this.link.schema(this.version(source));
    if (!finding.definition || !document || line === undefined || line.length > 200_000) return none;
    const whole = message(line);
    const root = [...this.schemas(source, row)].find(([at]) => finding.pointer.startsWith(`${at}/`));
    if (!whole || !root) return none;
    const [at, schema] = root;
    const content = whole[at.slice(1)] ?? null;
    const fixed = document.correct(schema, content, finding.pointer.slice(at.length));
    if (fixed === undefined) return none;
    const around = finding.pointer.split("/").slice(0, -1);
    return [around.join("/"), JSON.stringify(pointed(fixed, around.slice(at.split("/").length)), null, 2)];
  }

  /** The schemas of what the message carries. */
  private schemas(source: Source, row: Row): Map<string, Schema> {
    const schemas = new Map<string, Schema>();
    const document = this.link.schema(this.version(source));
    if (!document) return schemas;
    const put = (pointer: string, name: string): void => {
      const schema = document.definition(name);
      if (schema) schemas.set(pointer, schema);
    };
    put("/error", "Error");
    const method = this.method(source, row);
    if (method) {
      put("/params", method.params);
      put("/result", method.result);
    }
    return schemas;
  }

  private method(source: Source, row: Row): Method | undefined {
    return this.hello()?.methods.find((m) => m.method === row.method && m.version === this.version(source));
  }
}

/** An example of a rule: a message on each line. */
function example(title: string, text: string, open: boolean): HTMLElement {
  return el("details", { class: "example", open }, el("summary", {}, title), long("pre", "text", text), copyButton("Copy example", () => text));
}

/** A link to a page of the protocol. */
function address(url: string): HTMLElement | undefined {
  return url.startsWith("https://") ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, "The page") : undefined;
}

function hex(data: Uint8Array, offset: number): string {
  const lines: string[] = [];
  for (let at = 0; at < data.length; at += 16) {
    const part = [...data.subarray(at, at + 16)];
    const digits = part.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(48);
    const letters = part.map((b) => b > 0x1f && b < 0x7f ? String.fromCharCode(b) : "·").join("");
    lines.push(`${(offset + at).toString(16).padStart(6, "0")}  ${digits} ${letters}`);
  }
  return lines.join("\n") + "\n";
}

