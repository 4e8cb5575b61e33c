// All findings about the sources that are shown, by requirement.

import type { Finding, Hello } from "./protocol";
import type { Source } from "./model";
import { severity } from "./model";
import { brief, count, el, plural, set } from "./text";

/** How many places of a requirement are listed at first. */
const some = 20;

export class Findings {
  readonly element = el("div", { class: "findings" });
  private drawn = "";

  constructor(private readonly go: (source: Source, n: number) => void) {}

  show(sources: Source[], hello: Hello | undefined): void {
    const key = sources.map((s) => `${s.id} ${total(s)} ${s.found.length}`).join();
    if (key === this.drawn) return;
    this.drawn = key;
    set(this.element, ...sources.map((s) => this.section(s, hello, sources.length > 1)));
  }

  private section(source: Source, hello: Hello | undefined, named: boolean): HTMLElement {
    const rules = new Map<string, { n: number; finding: Finding }[]>();
    for (const n of source.found) {
      for (const finding of source.row(n)?.findings ?? []) {
        const places = rules.get(finding.rule) ?? [];
        places.push({ n, finding });
        rules.set(finding.rule, places);
      }
    }
    const order = ["must", "should", "advice"];
    const sorted = [...rules].sort(([, a], [, b]) => order.indexOf(severity(a.map((p) => p.finding))) - order.indexOf(severity(b.map((p) => p.finding))));
    const section = el("section", { "aria-label": "Findings" }, named && el("h2", {}, brief(source.info.name, 100)));
    if (sorted.length === 0) section.append(el("p", { class: "empty" }, "No findings: every message that has passed is as it must be."));
    for (const [rule, places] of sorted) {
      const requirement = hello?.rules.find((r) => r.id === rule);
      const worst = severity(places.map((p) => p.finding));
      const list = el("ul", {});
      let shown = 0;
      const more = el("button", { type: "button", class: "more", onclick: () => extend(200) });
      const extend = (n: number): void => {
        for (const { n: row, finding } of places.slice(shown, shown + n)) {
          list.append(el("li", {}, el("button", { type: "button", class: "link", onclick: () => this.go(source, row) }, `${row}`), " ",
            brief(finding.message, 300), finding.pointer && el("code", {}, ` ${brief(finding.pointer, 120)}`)));
        }
        shown += n;
        set(more, `… ${count(places.length - shown)} more`);
        more.hidden = shown >= places.length;
      };
      extend(some);
      section.append(el("article", { class: `card ${worst}` },
        el("h3", {}, `${places[0]?.finding.level ?? ""} · ${rule}`, el("span", { class: "by" }, ` ${plural(places.length, "time")}`)),
        requirement ? el("p", { class: "requirement" }, requirement.text) : null, list, more));
    }
    return section;
  }
}

function total(source: Source): number {
  let sum = 0;
  for (const n of source.found) sum += source.row(n)?.findings?.length ?? 0;
  return sum;
}
