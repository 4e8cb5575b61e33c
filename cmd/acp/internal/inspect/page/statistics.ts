// Numbers about the sources: methods, delays, sizes, tokens, and requests without an answer.

import type { MethodStats, SessionStats, Stats } from "./protocol";
import type { Source } from "./model";
import { brief, bytes, count, duration, el, plural, set } from "./text";

export class Statistics {
  readonly element = el("div", { class: "statistics" });
  private drawn = "";

  constructor(private readonly go: (source: Source, n: number) => void) {}

  show(sources: Source[]): void {
    const key = JSON.stringify(sources.map((s) => [s.id, s.state?.stats, s.state?.unanswered]));
    if (key === this.drawn) return;
    this.drawn = key;
    set(this.element, ...sources.map((s) => this.section(s, sources.length > 1)));
  }

  private section(source: Source, named: boolean): HTMLElement {
    const stats = source.state?.stats;
    const section = el("section", { "aria-label": "Statistics" }, named && el("h2", {}, brief(source.info.name, 100)));
    if (!stats) {
      section.append(el("p", { class: "empty" }, "There are no numbers yet."));
      return section;
    }
    section.append(el("dl", { class: "totals" },
      ...pair("Messages", count(stats.messages)), ...pair("Bytes", bytes(stats.bytes)),
      ...pair("From the client", `${count(stats.client.messages)}, ${bytes(stats.client.bytes)}`),
      ...pair("From the agent", `${count(stats.agent.messages)}, ${bytes(stats.agent.bytes)}`),
      ...(stats.durationMs === undefined ? [] : pair("Time", duration(stats.durationMs)))));
    const unanswered = source.state?.unanswered ?? [];
    section.append(el("h3", {}, "Requests without an answer"), unanswered.length === 0 ? el("p", {}, "None.")
      : el("p", {}, ...unanswered.slice(0, 50).flatMap((n) => [
        el("button", { type: "button", class: "link", onclick: () => this.go(source, n) }, `${n} ${brief(source.row(n)?.method ?? "", 60)}`), " "]),
      unanswered.length > 50 && `and ${count(unanswered.length - 50)} more`));
    section.append(el("h3", {}, "Methods"), scroll("Methods", methods(stats)));
    if (stats.sessions.length > 0) section.append(el("h3", {}, "Sessions"), scroll("Sessions", sessions(stats)));
    if (stats.uncounted) section.append(el("p", {}, `${plural(stats.uncounted, "message")} of further methods and sessions are only in the totals.`));
    return section;
  }
}

function pair(name: string, value: string): HTMLElement[] {
  return [el("dt", {}, name), el("dd", {}, value)];
}

function scroll(label: string, table: HTMLElement): HTMLElement {
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": label }, table);
}

function table(head: string[], rows: (string | HTMLElement)[][]): HTMLElement {
  return el("table", {}, el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...rows.slice(0, 500).map(([first, ...cells]) => el("tr", {}, el("th", { scope: "row" }, first ?? ""), ...cells.map((c) => el("td", {}, c))))));
}

function methods(stats: Stats): HTMLElement {
  return table(["Method", "From", "Count", "Bytes", "Errors", "Median", "95 %", "Longest"], stats.methods.map((m: MethodStats) => [
    brief(m.update ?? m.method, 100), m.from, count(m.count), bytes(m.bytes), m.errors ? count(m.errors) : "",
    ...[m.delayMs?.p50, m.delayMs?.p95, m.delayMs?.max].map((d) => d === undefined ? "" : duration(d)),
  ]));
}

function sessions(stats: Stats): HTMLElement {
  return table(["Session", "Messages", "Prompts", "Context", "Tokens", "Cost"], stats.sessions.map((s: SessionStats) => [
    brief(s.id ?? "", 60), count(s.messages), count(s.prompts),
    s.contextUsed === undefined ? "" : `${count(s.contextUsed)}${s.contextSize === undefined ? "" : ` of ${count(s.contextSize)}`}`,
    Object.entries(s.usage ?? {}).map(([kind, n]) => `${brief(kind, 30)} ${count(n)}`).join(", "),
    Object.entries(s.cost ?? {}).map(([currency, n]) => `${n.toFixed(4)} ${brief(currency, 10)}`).join(", "),
  ]));
}
