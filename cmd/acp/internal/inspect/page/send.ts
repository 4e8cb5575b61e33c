// Sending by hand: starting the agent, a form for each method, lines as they are, faults on the way, and the probe.

import type { Answers, Fault, Method, Row } from "./protocol";
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
  private readonly scenarios = el("select", { "aria-label": "Scenario" });
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
        el("div", { class: "actions" }, el("button", { type: "button", onclick: () => void this.live.line(this.line.value) }, "Send line"))),
      group("Misbehave", el("p", { class: "note" }, "What happens to the messages that you send, until you change it."), this.faults((fault) => {
        this.live.fault = fault;
      }), el("details", {}, el("summary", {}, "Answers that acp sends by itself"), this.faults((fault) => {
        const source = this.live.running;
        if (source) void this.live.command({ do: "faults", source: source.id, faults: fault ? { answers: fault } : {} });
        else say("The agent is not running.");
      }))),
      group("Probe", el("p", { class: "note" }, "Plays a scenario against a new start of the agent."),
        el("div", { class: "actions" }, this.scenarios, el("button", { type: "button", onclick: () => void this.probe() }, "Run"))));
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
    set(this.scenarios, ...hello.scenarios.map((s) => el("option", { value: s }, s)));
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

  private async probe(): Promise<void> {
    const reply = await this.live.command({ do: "probe", scenario: this.scenarios.value });
    if (!reply.error) say(`${this.scenarios.value} is running.`);
  }

  private faults(changed: (fault: Fault | undefined) => void): HTMLElement {
    const read = (): void => {
      const fault: Fault = {};
      if (Number(delay.value) > 0) fault.delay = Number(delay.value);
      if (drop.checked) fault.drop = true;
      if (Number(times.value) > 1) fault.times = Number(times.value);
      if (corrupt.value) fault.corrupt = corrupt.value as NonNullable<Fault["corrupt"]>;
      changed(Object.keys(fault).length > 0 ? fault : undefined);
    };
    const delay = el("input", { type: "number", min: 0, max: 600000, value: 0, onchange: read });
    const times = el("input", { type: "number", min: 1, max: 100, value: 1, onchange: read });
    const drop = el("input", { type: "checkbox", onchange: read });
    const corrupt = el("select", { onchange: read });
    for (const [value, words] of [["", "no"], ["truncate", "cut in the middle"], ["utf8", "a byte that is not UTF-8"], ["json", "a missing brace"], ["id", "another id"]]) {
      corrupt.append(el("option", { value }, words ?? ""));
    }
    return el("div", { class: "faults" }, el("label", {}, "Delay (ms) ", delay), el("label", {}, "Times sent ", times),
      el("label", { class: "check" }, drop, "Drop"), el("label", {}, "Corrupt ", corrupt));
  }
}

function group(title: string, ...children: Node[]): HTMLElement {
  return el("section", { class: "group", "aria-label": title }, el("h2", {}, title), ...children);
}
