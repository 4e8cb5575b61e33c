// Sending by hand: starting the agent, a form for each method, and lines as they are.

import type { Answers, Method, Row } from "./protocol";
import { Form } from "./form";
import type { Live } from "./live";
import { capabilities } from "./live";
import type { Model, Source } from "./model";
import { message } from "./model";
import type { Json } from "./schema";
import { brief, el, say, set } from "./text";

export class Sender {
  readonly element: HTMLElement;
  private readonly start = el("section", { class: "group", "aria-label": "Agent" });
  private readonly body = el("div", { class: "group-body" });
  private readonly methods = el("select", { "aria-label": "Method to send", onchange: () => this.choose() });
  private readonly send = el("button", { type: "button", class: "primary", onclick: () => void this.sendForm() }, "Send");
  private readonly line = el("textarea", { class: "code", rows: 5, spellcheck: false, "aria-label": "Line to send" });
  private readonly state = el("p", { class: "state", role: "status" });
  private readonly startButton = el("button", { type: "button", class: "primary", onclick: () => void this.startAgent(false) }, "Start only");
  private readonly openButton = el("button", { type: "button", class: "primary", onclick: () => void this.startAgent(true) }, "Start and open a session");
  private form: Form | undefined;
  private capabilities: Form | undefined;
  private drawn = "";

  constructor(private readonly model: Model, private readonly live: Live) {
    const running = (how: "close" | "kill") => () => {
      const source = this.live.running;
      if (source) void this.live.command({ do: "kill", source: source.id, how });
      else say("The agent is not running.");
    };
    this.start.append(
      el("h2", {}, "Agent"), this.state,
      el("div", { class: "actions" }, this.openButton, this.startButton,
        el("button", { type: "button", onclick: running("close") }, "Close its input"), el("button", { type: "button", onclick: running("kill") }, "Kill")));
    this.element = el("div", { class: "sender" }, this.start,
      group("Method", this.methods, this.body, el("div", { class: "actions" }, this.send)),
      group("Line as it is", el("p", { class: "note" }, "For experts: it is sent without a check. Ids are yours."), this.line,
        el("div", { class: "actions" }, el("button", { type: "button", onclick: () => void this.live.line(this.line.value) }, "Send line"))));
  }

  update(): void {
    const { live } = this;
    const hello = this.model.hello;
    const { document, running } = live;
    set(this.state, `${brief(hello?.agent.join(" ") ?? "", 300)}: ${running ? "running" : live.source ? "ended" : "not started"}`);
    this.startButton.disabled = this.openButton.disabled = running !== undefined;
    const version = running?.state?.version === 2 ? 2 : live.version;
    const key = `${hello?.run} ${Boolean(document)} ${version}`;
    if (key === this.drawn || !hello || !document) return;
    this.drawn = key;
    this.setUp();
    const chosen = this.methods.value;
    set(this.methods);
    for (const stable of [true, false]) {
      const list = hello.methods.filter((m) => m.version === version && m.side === "client" && m.stable === stable);
      if (list.length === 0) continue;
      this.methods.append(el("optgroup", { label: stable ? "Stable" : "Experimental" }, ...list.map((m) => el("option", { value: m.method }, m.method))));
    }
    this.methods.value = chosen || "session/prompt";
    this.choose();
  }

  /** The controls for what is decided before the agent starts. */
  private setUp(): void {
    const { live } = this;
    const document = live.document;
    this.start.querySelector(".setup")?.remove();
    const version = el("select", { "aria-label": "Protocol version", onchange: () => {
      live.version = Number(version.value);
      live.capabilities = capabilities(live.version);
      this.drawn = "";
      this.update();
    } });
    const known = [...new Set(this.model.hello?.methods.map((m) => m.version))].sort();
    for (const v of known) version.append(el("option", { value: v }, `Version ${v}`));
    version.value = String(live.version);
    const body = el("details", { class: "setup" }, el("summary", {}, "Version, capabilities, files and terminals"), el("label", {}, "Protocol ", version));
    const schema = document?.definition("ClientCapabilities");
    if (document && schema) {
      this.capabilities = new Form(document, schema, live.capabilities, { suggestions: {}, changed: () => {
        try {
          if (this.capabilities) live.capabilities = this.capabilities.value();
        } catch {
          // what is being typed is no value yet
        }
      } });
      body.append(el("fieldset", {}, el("legend", {}, "Capabilities that the client claims"), this.capabilities.element));
    }
    for (const what of ["fs", "terminal"] as const) {
      const select = el("select", { onchange: () => {
        live.answers = { ...live.answers, [what]: select.value as Answers["fs"] };
        const source = live.running;
        if (source) void live.command({ do: "answers", source: source.id, answers: live.answers });
      } });
      const options: [Answers["fs"], string][] = [["memory", "simulated"], ["ask", "asked of you"]];
      if (this.model.hello?.folder) options.unshift(["folder", `in ${brief(this.model.hello.folder, 80)}`]);
      for (const [value, label] of options) select.append(el("option", { value }, label));
      select.value = live.answers[what];
      body.append(el("label", {}, what === "fs" ? "Files are " : "Terminals are ", select));
    }
    this.state.after(body);
  }

  /** Fills the form for the chosen method. */
  private choose(value?: Json): void {
    const { document } = this.live;
    const method = this.current();
    const schema = document && method && document.definition(method.params);
    if (!document || !schema) return;
    this.form = new Form(document, schema, value ?? this.live.example(method.method), { suggestions: this.live.suggestions });
    set(this.body, this.form.element);
  }

  private current(): Method | undefined {
    const version = this.live.running?.state?.version === 2 ? 2 : this.live.version;
    return this.model.hello?.methods.find((m) => m.method === this.methods.value && m.version === version);
  }

  /** Fills the form with a copy of a message. */
  edit(source: Source, row: Row): void {
    const line = this.live.link.line(source, row) ?? row.raw;
    const m = message(line);
    const known = [...this.methods.options].some((o) => o.value === row.method);
    this.line.value = line;
    if (m && known && (row.kind === "request" || row.kind === "notification")) {
      this.methods.value = row.method ?? "";
      this.choose(m["params"] ?? {});
      this.methods.focus();
    } else {
      this.line.focus();
    }
  }

  private async sendForm(): Promise<void> {
    const method = this.current();
    if (!method || !this.form) return;
    let params: Json;
    try {
      params = this.form.value();
    } catch (error) {
      return say(String(error));
    }
    if (!this.live.running && !(await this.live.start())) return;
    const reply = await this.live.send(method.method, params, method.result === "");
    if (!reply.error) say(`${method.method} is sent.`);
  }

  private async startAgent(open: boolean): Promise<void> {
    this.startButton.disabled = this.openButton.disabled = true;
    if (open) await this.live.open();
    else await this.live.start();
    this.update();
  }
}

function group(title: string, ...children: Node[]): HTMLElement {
  return el("section", { class: "group", "aria-label": title }, el("h2", {}, title), ...children);
}
