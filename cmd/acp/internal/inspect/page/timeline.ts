// The timeline of one source: a sequence diagram in a list, with filters.

import type { Row } from "./protocol";
import { List } from "./list";
import type { Source } from "./model";
import { severity, summary } from "./model";
import { add, brief, count, duration, el, narrow, plural, set, visible } from "./text";

/** A run of chunks of one message. */
interface Fold {
  rows: number[]; // indexes
  open: boolean;
}

/** A time without messages. */
interface Pause {
  pause: number;
}

/** What a line of the list shows: the row with an index, a fold, or a pause. */
type Entry = number | Fold | Pause;

/** How long nothing must happen to be shown as a pause, in milliseconds. */
const pauseFrom = 2000;

const rowHeight = 30;

export interface Filter {
  session: string;
  method: string;
  from: string;
  findings: string;
  text: string;
  fold: boolean;
}

export interface TimelineEvents {
  chosen(timeline: Timeline, row: Row): void;
  opened(timeline: Timeline, row: Row): void;
  /** Rows whose lines contain a text beyond what the page has of them. */
  find(text: string): Promise<{ source: string; n: number }[]>;
}

export class Timeline {
  readonly element: HTMLElement;
  readonly list: List;
  private entries: Entry[] = [];
  private filter: Filter = { session: "", method: "", from: "", findings: "", text: "", fold: true };
  private seen = 0; // rows that entries reflect
  private shown = 0; // rows that pass the filter
  private readonly folds = new Map<string, Fold>(); // the last one of each session, to which chunks may be added
  private foundBeyond = new Set<string>();
  private source: Source | undefined;
  private readonly lanes = el("div", { class: "lanes", "aria-hidden": "true" });
  private readonly counted = el("span", { class: "counted", role: "status" });
  private readonly session = el("select", { "aria-label": "Filter by session", onchange: () => this.filtered() });
  private readonly method = el("select", { "aria-label": "Filter by method", onchange: () => this.filtered() });
  private readonly from = el("select", { "aria-label": "Filter by direction", onchange: () => this.filtered() });
  private readonly findings = el("select", { "aria-label": "Filter by findings", onchange: () => this.filtered() });
  readonly search = el("input", { type: "search", "aria-label": "Search in messages", placeholder: "Search", oninput: () => this.filtered() });
  private readonly fold = el("input", { type: "checkbox", checked: true, onchange: () => this.filtered() });
  private options = "";

  constructor(private readonly events: TimelineEvents, readonly id: string) {
    this.list = new List({
      length: () => this.entries.length,
      draw: (index, element) => this.draw(index, element),
      chosen: (index) => this.choose(index),
      opened: (index) => this.openEntry(index),
    }, rowHeight, "Timeline", id);
    this.list.follow = true;
    for (const [value, label] of [["", "All messages"], ["any", "With findings"], ["must", "MUST"], ["should", "SHOULD"], ["advice", "Advice"]]) {
      this.findings.append(el("option", { value }, label));
    }
    this.element = el("section", { class: "timeline", "aria-label": "Timeline" },
      el("div", { class: "filters", role: "search" }, this.search,
        el("details", { class: "more-filters", open: !narrow.matches }, el("summary", {}, "Filters"),
          this.session, this.method, this.from, this.findings, el("label", { class: "check" }, this.fold, "Fold chunks")),
        this.counted),
      el("div", { class: "diagram" }, this.lanes, this.list.element));
  }

  show(source: Source | undefined): void {
    if (source === this.source) return;
    this.source = source;
    this.list.current = -1;
    this.list.follow = source?.info.kind !== "file";
    this.options = "";
    set(this.lanes, ...(source?.info.lanes ?? []).map((lane, i, all) => {
      const element = el("div", { class: "lane" }, el("span", { class: "lane-name" }, lane));
      element.style.left = place(i, all.length);
      return element;
    }));
    this.rebuild();
  }

  get current(): Row | undefined {
    const entry = this.entries[this.list.current];
    return entry === undefined ? undefined : this.rowOf(entry);
  }

  private rowOf(entry: Entry): Row | undefined {
    if (typeof entry === "number") return this.source?.rows[entry];
    return "pause" in entry ? undefined : this.source?.rows[entry.rows[0] ?? -1];
  }

  /** Selects a row, whatever the filter and folds hide. */
  go(row: Row): void {
    const index = this.source?.rows.indexOf(row) ?? -1;
    let at = this.find(index);
    if (at < 0) {
      this.reset();
      at = this.find(index);
    }
    this.list.follow = false;
    if (at >= 0) this.list.select(at);
  }

  /** The entry of a row; a fold that contains it is opened. */
  private find(index: number): number {
    const direct = this.entries.indexOf(index);
    if (direct >= 0) return direct;
    const fold = this.entries.findIndex((e) => typeof e === "object" && "rows" in e && e.rows.includes(index));
    if (fold < 0) return -1;
    this.toggle(fold);
    return this.entries.indexOf(index);
  }

  /** Shows all rows. */
  reset(): void {
    for (const control of [this.session, this.method, this.from, this.findings, this.search]) control.value = "";
    this.filtered();
  }

  toggleFolds(): void {
    this.fold.checked = !this.fold.checked;
    this.filtered();
  }

  private filtered(): void {
    this.filter = {
      session: this.session.value, method: this.method.value, from: this.from.value, findings: this.findings.value,
      text: this.search.value.toLowerCase(), fold: this.fold.checked,
    };
    this.foundBeyond.clear();
    this.rebuild();
    const { text } = this.filter;
    const source = this.source;
    if (!text || !source || !source.rows.some((r) => r.cut)) return;
    void this.events.find(text).then((rows) => {
      if (this.filter.text !== text || this.source !== source) return;
      this.foundBeyond = new Set(rows.map((r) => `${r.source} ${r.n}`));
      this.rebuild();
    });
  }

  /** Takes what the source has received. With all, what was there may have changed. */
  update(all: boolean): void {
    if (all && this.filter.findings) this.rebuild();
    else this.extend();
    if (all) this.list.changed(true);
  }

  private rebuild(): void {
    const selected = this.current;
    this.entries = [];
    this.seen = this.shown = 0;
    this.folds.clear();
    this.extend();
    this.list.current = selected ? this.entries.findIndex((e) => this.rowOf(e) === selected) : -1;
    this.list.changed(true);
    if (this.list.current >= 0) this.list.show(this.list.current);
  }

  private extend(): void {
    const rows = this.source?.rows ?? [];
    const filtered = Boolean(this.filter.session || this.filter.method || this.filter.from || this.filter.findings || this.filter.text);
    for (; this.seen < rows.length; this.seen++) {
      const row = rows[this.seen];
      if (!row) break;
      if (!this.matches(row)) continue;
      this.shown++;
      const before = rows[this.seen - 1];
      if (!filtered && before && row.t >= 0 && before.t >= 0 && row.t - before.t >= pauseFrom) {
        this.folds.clear();
        this.entries.push({ pause: row.t - before.t });
      }
      this.place(row);
    }
    this.refreshOptions();
    const total = rows.length;
    set(this.counted, filtered ? `${count(this.shown)} of ${plural(total, "row")}` : plural(total, "row"));
    this.list.changed(false);
  }

  private place(row: Row): void {
    const session = `${row.source} ${row.session ?? ""}`;
    if (!this.filter.fold || !row.update?.endsWith("_chunk") || row.findings) {
      this.folds.delete(session);
      this.entries.push(this.seen);
      return;
    }
    const fold = this.folds.get(session);
    const last = fold && this.source?.rows[fold.rows.at(-1) ?? -1];
    if (fold && last && last.source === row.source && last.update === row.update && last.message === row.message && last.from === row.from) {
      fold.rows.push(this.seen);
      if (fold.open) this.entries.splice(this.entries.lastIndexOf(fold) + fold.rows.length, 0, this.seen);
      this.list.changed(true);
      return;
    }
    const created = { rows: [this.seen], open: false };
    this.folds.set(session, created);
    this.entries.push(created);
  }

  private matches(row: Row): boolean {
    const f = this.filter;
    if (f.session && row.session !== f.session) return false;
    if (f.method && row.method !== f.method && row.update !== f.method) return false;
    if (f.from && (f.from === "stderr" ? row.kind !== "stderr" : row.kind === "stderr" || row.from !== f.from)) return false;
    if (f.findings && (f.findings === "any" ? !row.findings : !row.findings?.some((x) => severity([x]) === f.findings))) return false;
    if (!f.text) return true;
    return row.raw.toLowerCase().includes(f.text) || Boolean(row.text?.toLowerCase().includes(f.text)) || this.foundBeyond.has(`${row.source} ${row.n}`);
  }

  /** Offers in the filters what the source contains. */
  private refreshOptions(): void {
    const source = this.source;
    const key = `${source?.id} ${source?.methods.size} ${source?.sessions.size} ${source?.subagents.size}`;
    if (key === this.options) return;
    this.options = key;
    const fill = (select: HTMLSelectElement, all: string, options: [string, string][]): void => {
      const { value } = select;
      set(select, el("option", { value: "" }, all));
      for (const [name, label] of options) {
        const option = el("option", {}, brief(label, 60));
        option.value = name;
        select.append(option);
      }
      select.value = options.some(([name]) => name === value) ? value : "";
    };
    // So many that nobody could choose would only be slow.
    const keys = (map?: Map<string, number>): string[] => [...(map?.keys() ?? [])].slice(0, 500);
    fill(this.session, "All sessions", keys(source?.sessions).map((s) => {
      const title = source?.subagents.get(s);
      return [s, title === undefined ? s : `${s} (subagent ${title})`];
    }));
    fill(this.method, "All methods", keys(source?.methods).sort().map((m) => [m, m]));
    fill(this.from, "Both directions", [...(source?.info.lanes ?? []).map((l): [string, string] => [l, `From ${l}`]), ["stderr", "Standard error"]]);
  }

  private choose(index: number): void {
    const entry = this.entries[index];
    const row = entry === undefined ? undefined : this.rowOf(entry);
    if (row) this.events.chosen(this, row);
  }

  private openEntry(index: number): void {
    const entry = this.entries[index];
    if (typeof entry === "object" && "rows" in entry && entry.rows.length > 1) return this.toggle(index);
    const row = entry === undefined ? undefined : this.rowOf(entry);
    if (row) this.events.opened(this, row);
  }

  private toggle(index: number): void {
    const fold = this.entries[index];
    if (typeof fold !== "object" || !("rows" in fold)) return;
    fold.open = !fold.open;
    const after = this.entries.slice(index + 1);
    this.entries.length = index + 1;
    for (const row of fold.open ? fold.rows : []) this.entries.push(row);
    for (const entry of fold.open ? after : after.slice(fold.rows.length)) this.entries.push(entry);
    this.list.changed(true);
  }

  private draw(index: number, element: HTMLElement): void {
    const entry = this.entries[index];
    element.className = "row";
    element.removeAttribute("aria-expanded");
    if (entry === undefined) return;
    if (typeof entry === "object" && "pause" in entry) {
      const words = `${duration(entry.pause)} without messages`;
      element.classList.add("pause");
      element.setAttribute("aria-label", words);
      set(element, el("span", { class: "wide" }, words));
      return;
    }
    const row = this.rowOf(entry);
    const source = this.source;
    if (!row || !source) return;
    const fold = typeof entry === "object" && entry.rows.length > 1 ? entry : undefined;
    const worst = severity(row.findings);
    const what = label(row) + (fold ? ` × ${count(fold.rows.length)}` : "");
    const about = brief(fold ? this.foldText(fold) : summary(row), 200);
    const time = row.t < 0 ? "" : clock(row.t);
    const last = fold && source.rows[fold.rows.at(-1) ?? -1];
    const delay = last && row.t >= 0 ? duration(last.t - row.t) : row.delay === undefined ? "" : duration(row.delay);
    element.classList.add(row.kind);
    if (worst) element.classList.add(worst);
    const chosen = this.current;
    if (chosen && row.source === chosen.source && (row.re === chosen.n || chosen.re === row.n)) element.classList.add("partner");
    if (fold) element.setAttribute("aria-expanded", String(fold.open));
    element.setAttribute("aria-label", visible([
      row.n, time, row.to ? `${row.from} to ${row.to}` : row.kind, kindWord(row), what, about, delay && `after ${delay}`,
      row.findings && plural(row.findings.length, "finding"),
    ].filter(Boolean).join(", ")));

    const lanes = source.info.lanes;
    const diagram = el("div", { class: "arrow-area" });
    const from = lanes.indexOf(row.from);
    const to = lanes.indexOf(row.to);
    const words = el("span", { class: "words" },
      fold && el("span", { class: "fold" }, fold.open ? "▾ " : "▸ "),
      el("span", { class: "what" }, what), about && el("span", { class: "about" }, about));
    if (from >= 0 && to >= 0 && from !== to) {
      const arrow = el("div", { class: `arrow ${from < to ? "right" : "left"}` });
      arrow.style.left = place(Math.min(from, to), lanes.length);
      arrow.style.right = place(lanes.length - 1 - Math.max(from, to), lanes.length);
      add(arrow, words);
      diagram.append(arrow);
    } else {
      diagram.append(el("div", { class: `plain ${from > 0 ? "end" : ""}` }, words));
    }
    set(element,
      el("span", { class: "number" }, String(row.n)),
      el("span", { class: "time" }, time),
      diagram,
      el("span", { class: "delay" }, delay),
      el("span", { class: "mark", title: row.findings && plural(row.findings.length, "finding") },
        row.findings ? (worst === "must" ? "✖" : worst === "should" ? "▲" : "ℹ") + (row.findings.length > 1 ? String(row.findings.length) : "") : ""));
  }

  private foldText(fold: Fold): string {
    let text = "";
    for (const index of fold.rows) {
      const row = this.source?.rows[index];
      if (row) text += summary(row);
      if (text.length > 200) break;
    }
    return text;
  }
}

/** Where a lane is, from the left; the first and the last leave room for half of their names. */
function place(lane: number, lanes: number): string {
  const part = lanes > 1 ? lane / (lanes - 1) : 0.5;
  return `calc(${100 * part}% + ${36 - 72 * part}px)`;
}

/** A time since the beginning, in a form in which all have the same width. */
function clock(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 1000) return seconds.toFixed(3);
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${(seconds - 60 * minutes).toFixed(1).padStart(4, "0")}`;
}

export function label(row: Row): string {
  switch (row.kind) {
    case "stderr": return "stderr";
    case "gap": return "missing";
    case "end": return "end";
    case "invalid": return "not a message";
  }
  return row.update ?? row.method ?? `answer to ${row.id ?? "?"}`;
}

export function kindWord(row: Row): string {
  return row.kind === "error" ? "error response" : row.kind;
}
