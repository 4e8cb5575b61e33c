// The page as a whole: its parts, which source and message they show, and the keys.

import type { Row } from "./protocol";
import { Capabilities } from "./capabilities";
import { Conversation } from "./conversation";
import { Findings } from "./findings";
import { Help } from "./help";
import { downloadButton, open, request } from "./link";
import { Live } from "./live";
import { MessagePane } from "./message";
import type { Source } from "./model";
import { Chain, Model, severity } from "./model";
import { Prompt } from "./prompt";
import { Questions } from "./questions";
import { Sender } from "./send";
import { Statistics } from "./statistics";
import { Timeline } from "./timeline";
import { brief, count, el, narrow, plural, set, visible } from "./text";

const tabs = ["Timeline", "Message", "Conversation", "Findings", "Capabilities", "Statistics", "Send"] as const;
type Tab = (typeof tabs)[number];

class Page {
  private readonly model = new Model();
  private readonly link = open(this.model);
  private readonly live = new Live(this.model, this.link);
  private readonly timelines = [this.timeline(0), this.timeline(1)] as const;
  private readonly chosen: (Source | undefined)[] = [undefined, undefined];
  private active = 0; // the timeline whose message is shown
  private comparing = false;
  private tab: Tab = "Message";
  private readonly message = new MessagePane(this.link, () => this.model.hello, {
    go: (source, n) => this.go(source, n),
    edit: (source, row) => {
      this.open("Send");
      this.sender.edit(source, row);
    },
  });
  private readonly conversation = new Conversation();
  private readonly findings = new Findings((source, n) => this.go(source, n));
  private readonly capabilities = new Capabilities(this.link);
  private readonly statistics = new Statistics((source, n) => this.go(source, n));
  private readonly sender = new Sender(this.model, this.live);
  private readonly questions = new Questions(this.live,
    (name) => this.model.hello?.methods.find((m) => m.method === name && m.version === (this.live.running?.state?.version === 2 ? 2 : 1)),
    (n) => this.live.running && this.go(this.live.running, n));
  private readonly prompt = new Prompt(this.live, () => this.update());
  private readonly help = new Help();

  private readonly pickers = [0, 1].map((i) => el("select", { "aria-label": i === 0 ? "Source" : "Second source", onchange: () => {
    this.chosen[i] = this.model.diagrams.find((s) => s.id === this.pickers[i]?.value);
    this.follow = false;
    this.update();
  } }));
  /** Whether the newest source is shown when one begins. */
  private follow = true;
  private readonly title = el("span", { class: "title" });
  private readonly verdict = el("button", { type: "button", class: "verdict", onclick: () => this.worstFinding() });
  private readonly linkState = el("button", { type: "button", class: "link-state", onclick: () => this.link.retry() });
  private readonly compare = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggleCompare() }, "Compare");
  private readonly exports = el("details", { class: "menu" }, el("summary", {}, "Export"));
  private readonly tablist = el("div", { class: "tabs", role: "tablist", "aria-label": "Views", onkeydown: (e: KeyboardEvent) => this.tabKey(e) });
  private readonly panels = new Map<Tab, HTMLElement>();
  private readonly main = el("main", {});

  constructor() {
    const panes = el("div", { class: "timelines", id: "panel-Timeline", role: "tabpanel", "aria-labelledby": "tab-Timeline" },
      this.timelines[0].element, this.timelines[1].element);
    this.panels.set("Timeline", panes);
    const views: [Tab, HTMLElement][] = [
      ["Message", this.message.element], ["Conversation", this.conversation.element], ["Findings", this.findings.element],
      ["Capabilities", this.capabilities.element], ["Statistics", this.statistics.element], ["Send", this.sender.element],
    ];
    const side = el("div", { class: "side-panels" });
    for (const [tab, view] of views) {
      const panel = el("div", { class: "panel", id: `panel-${tab}`, role: "tabpanel", "aria-labelledby": `tab-${tab}`, tabindex: -1 }, view);
      this.panels.set(tab, panel);
      side.append(panel);
    }
    for (const tab of tabs) {
      this.tablist.append(el("button", { type: "button", role: "tab", id: `tab-${tab}`, "aria-controls": `panel-${tab}`, onclick: () => this.open(tab) }, tab));
    }
    this.main.append(panes, el("div", { class: "side" }, side, this.questions.element, this.prompt.element));
    document.body.prepend(
      el("header", { class: "bar" }, el("h1", {}, "acp inspect"), this.title, ...this.pickers, this.compare, this.verdict, el("span", { class: "space" }),
        this.linkState, this.exports,
        el("button", { type: "button", title: "Light or dark (t)", onclick: () => theme() }, "Theme"),
        el("button", { type: "button", title: "Keys (?)", onclick: () => this.help.show() }, "Keys")),
      this.tablist, this.main, el("div", { id: "status", role: "status" }), this.help.element);
    document.addEventListener("keydown", (event) => this.key(event));
    this.model.onChange((changes) => {
      if (changes.has("sources") && this.model.sources.length === 0) this.chosen.fill(undefined);
      if (changes.has("sources") && this.follow) this.chosen[0] = this.model.sources.findLast((s) => s.info.kind !== "file") ?? this.model.diagrams[0];
      if (changes.has("sources") && this.model.diagrams.length === 2 && this.model.sources.every((s) => s.info.kind === "file")) {
        this.chosen[1] ??= this.model.sources[1];
        this.comparing = true;
      }
      for (const timeline of this.timelines) timeline.update(changes.has("late"));
      this.update();
    });
    this.open("Message");
  }

  private timeline(i: number): Timeline {
    return new Timeline({
      chosen: (_, row) => {
        this.active = i;
        this.message.show(this.model.source(row.source), row);
        if (this.tab !== "Timeline" || !narrow.matches) this.open("Message");
        this.timelines[i]?.list.changed(true);
      },
      opened: () => {
        this.open("Message");
        this.message.focus();
      },
      find: async (text) => {
        if (this.link.state === "report") return [];
        const response = await request(`/find?q=${encodeURIComponent(text)}`);
        return response.ok ? ((await response.json()) as { rows: { source: string; n: number }[] }).rows : [];
      },
    }, `rows-${i}`);
  }

  /** The connections that the timelines show. */
  private get shown(): Source[] {
    return this.chosen.filter((s, i): s is Source => s !== undefined && (i === 0 || this.comparing)).flatMap((s) => s instanceof Chain ? s.parts : [s]);
  }

  private update(): void {
    const { hello, sources, diagrams } = this.model;
    this.chosen[0] ??= diagrams[0];
    if (this.comparing) this.chosen[1] ??= diagrams.find((s) => s !== this.chosen[0]);
    document.body.classList.toggle("comparing", this.comparing);
    document.body.classList.toggle("live", this.live.possible);
    document.getElementById("tab-Send")!.hidden = !this.live.possible;
    this.timelines.forEach((timeline, i) => timeline.show(i === 0 || this.comparing ? this.chosen[i] : undefined));
    this.timelines[1].element.hidden = !this.comparing;
    this.bar();
    this.exportMenu();
    if (hello && this.tab === "Message" && this.live.possible && sources.length === 0 && !this.greeted) this.open("Send");
    this.greeted ||= hello !== undefined;
    this.message.update();
    switch (this.tab) {
      case "Conversation": this.conversation.show(this.connection); break;
      case "Findings": this.findings.show(this.shown, hello); break;
      case "Capabilities": this.capabilities.show(this.shown); break;
      case "Statistics": this.statistics.show(this.shown); break;
    }
    this.sender.update();
    this.prompt.update();
    this.questions.update();
  }

  private greeted = false;

  /** The connection that is looked at: that of the selected message, or the first. */
  private get connection(): Source | undefined {
    const row = this.timelines[this.active]?.current;
    const source = this.chosen[this.active] ?? this.chosen[0];
    return (row && this.model.source(row.source)) ?? (source instanceof Chain ? source.parts[0] : source);
  }

  private bar(): void {
    const { diagrams: sources } = this.model;
    this.pickers.forEach((picker, i) => {
      picker.hidden = sources.length < 2 || (i === 1 && !this.comparing);
      if (picker.options.length !== sources.length) {
        set(picker, ...sources.map((s) => el("option", { value: s.id }, brief(`${s.id}: ${s.info.name}`, 60))));
      }
      picker.value = this.chosen[i]?.id ?? "";
    });
    const only = this.chosen[0];
    const names = [sources.length < 2 && only && brief(only.info.name, 60), only?.info.masked && "secrets masked"].filter(Boolean).join(" · ");
    if (this.title.textContent !== names) set(this.title, names);
    this.compare.hidden = sources.length < 2;
    this.compare.setAttribute("aria-pressed", String(this.comparing));
    const sum = { must: 0, should: 0, advice: 0 };
    for (const s of this.shown) for (const level of ["must", "should", "advice"] as const) sum[level] += s.state?.findings[level] ?? 0;
    const words = [sum.must && `${count(sum.must)} MUST`, sum.should && `${count(sum.should)} SHOULD`, sum.advice && `${count(sum.advice)} advice`].filter(Boolean).join(", ");
    const verdict = words || "No findings";
    if (this.verdict.textContent !== verdict) set(this.verdict, verdict);
    this.verdict.className = `verdict ${sum.must ? "must" : sum.should ? "should" : sum.advice ? "advice" : "none"}`;
    this.verdict.title = words ? "Go to the worst finding (n: to the next)" : "";
    const states = { connecting: "Connecting…", connected: "Connected", lost: "Connection lost. Trying again; press to try now.", refused: "This link was used before, or is of another run. Press Enter in acp's terminal for a new one.", report: "Report" };
    const state = this.link.state === "connected" && !this.model.caughtUp && sources.length > 0 ? "Loading…" : states[this.link.state];
    if (this.linkState.textContent !== state) set(this.linkState, state);
    this.linkState.className = `link-state ${this.link.state}`;
    this.linkState.disabled = this.link.state !== "lost";
    document.title = `acp inspect${only ? ` · ${visible(brief(only.info.name, 40))}` : ""}${sum.must ? ` · ${plural(sum.must, "fault")}` : ""}`;
  }

  private exported = "";

  private exportMenu(): void {
    const source = this.connection;
    this.exports.hidden = this.link.state === "report" || !source;
    if (!source || source.id === this.exported) return;
    this.exported = source.id;
    const formats: [string, string][] = [
      ["recording", "Recording"], ["html", "Report, one HTML file"],
    ];
    this.exports.querySelector("ul")?.remove();
    this.exports.append(el("ul", {}, ...formats.map(([format, words]) => el("li", {},
      downloadButton(words, `/export?source=${encodeURIComponent(source.id)}&as=${format}`)))));
  }

  private open(tab: Tab): void {
    if (tab === "Timeline" && !narrow.matches) tab = "Message";
    this.tab = tab;
    document.body.dataset["tab"] = tab;
    for (const button of this.tablist.querySelectorAll<HTMLElement>("[role=tab]")) {
      const selected = button.id === `tab-${tab}`;
      button.setAttribute("aria-selected", String(selected));
      button.tabIndex = selected ? 0 : -1;
      if (selected) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    for (const [name, panel] of this.panels) panel.classList.toggle("current", name === tab);
    this.update();
  }

  private tabKey(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const usable = tabs.filter((t) => document.getElementById(`tab-${t}`)?.offsetParent);
    const next = usable[(usable.indexOf(this.tab) + step + usable.length) % usable.length];
    if (next) this.open(next);
    document.getElementById(`tab-${this.tab}`)?.focus();
    event.preventDefault();
  }

  private go(source: Source, n: number): void {
    const row = source.row(n);
    if (!row) return;
    let i = this.chosen.findIndex((s, i) => (i === 0 || this.comparing) && s?.rows.includes(row));
    if (i < 0) {
      this.chosen[0] = source;
      this.follow = false;
      i = 0;
      this.update();
    }
    this.active = i;
    this.timelines[i]?.go(row);
    this.open("Message");
  }

  private nextFinding(step: 1 | -1, level = ""): void {
    const rows = (this.chosen[this.active] ?? this.chosen[0])?.rows ?? [];
    const current = this.timelines[this.active]?.current;
    const at = current ? rows.indexOf(current) : -1;
    const wanted = (row: Row): boolean => row.findings !== undefined && (level === "" || severity(row.findings) === level);
    const [before, after] = [rows.slice(0, Math.max(at, 0)), rows.slice(at + 1)];
    const next = step > 0 ? (after.find(wanted) ?? before.find(wanted)) : (before.findLast(wanted) ?? after.findLast(wanted));
    const source = next && this.model.source(next.source);
    if (source) this.go(source, next.n);
    else if (!current?.findings) this.open("Findings");
  }

  /** Goes to the next one of the worst findings. */
  private worstFinding(): void {
    const found = this.shown.flatMap((s) => s.found.map((n) => s.row(n)));
    const level = ["must", "should", "advice"].find((l) => found.some((r) => severity(r?.findings) === l));
    const there = (i: number): boolean => this.chosen[i]?.rows.some((r) => severity(r.findings) === level) === true;
    if (!there(this.active)) this.active = [0, 1].find(there) ?? this.active;
    this.nextFinding(1, level);
  }

  private toggleCompare(): void {
    this.comparing = !this.comparing && this.model.diagrams.length > 1;
    if (!this.comparing) this.active = 0;
    this.update();
  }

  private partner(): void {
    const row: Row | undefined = this.timelines[this.active]?.current;
    const source = row && this.model.source(row.source);
    const other = row && (row.re ?? source?.answers.get(row.n));
    if (source && other !== undefined) this.go(source, other);
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = target.matches("input:not([type=checkbox]), textarea, select");
    if (event.key === "Escape") {
      if (this.exports.open) this.exports.open = false;
      if (narrow.matches) this.open("Timeline");
      this.timelines[this.active]?.list.element.focus();
      return;
    }
    if (typing || !this.help.keysOn || this.help.element.open) return;
    const timeline = this.timelines[this.active];
    const number = Number(event.key);
    const actions: Record<string, () => void> = {
      "?": () => this.help.show(),
      "/": () => timeline?.search.focus(),
      n: () => this.nextFinding(1),
      N: () => this.nextFinding(-1),
      r: () => this.partner(),
      f: () => timeline?.toggleFolds(),
      c: () => this.toggleCompare(),
      t: () => theme(),
      p: () => this.prompt.input.focus(),
      x: () => void (this.live.busy && this.live.cancel()),
      e: () => {
        const row = timeline?.current;
        const source = row && this.model.source(row.source);
        if (!source || !row || !this.live.possible) return;
        this.open("Send");
        this.sender.edit(source, row);
      },
      j: () => timeline?.list.select(timeline.list.current + 1),
      k: () => timeline?.list.select(timeline.list.current - 1),
    };
    const tab = tabs[number - 1];
    if (tab && number >= 1 && document.getElementById(`tab-${tab}`)?.offsetParent) this.open(tab);
    else if (Object.hasOwn(actions, event.key)) actions[event.key]?.();
    else return;
    event.preventDefault();
  }
}

/** Changes between light and dark. At first it is as the system has it. */
function theme(): void {
  const root = document.documentElement;
  const dark = root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset["theme"] = dark ? "light" : "dark";
}

new Page();
