// The conversation as a user would see it.

import type { Item } from "./protocol";
import type { Source } from "./model";
import { brief, count, el, long, set } from "./text";

/** How many items are drawn at once. */
const some = 200;

const names: Record<Item["kind"], string> = {
  user: "User", agent: "Agent", thought: "Thought", tool: "Tool call", subagent: "Subagent", message: "Message of a session",
  compaction: "Compaction", notice: "Notice", unknown: "Unknown update", plan: "Plan", permission: "Permission",
};

export class Conversation {
  readonly element: HTMLElement;
  private readonly body = el("div", { class: "items", role: "log", "aria-label": "Conversation" });
  private readonly sessions = el("select", { "aria-label": "Session of the conversation", onchange: () => {
    this.reset();
    this.update();
  } });
  private source: Source | undefined;
  private first = 0;
  private readonly drawn = new Map<number, { item: Item; element: HTMLElement }>();
  private offered = 0;

  constructor() {
    this.element = el("div", { class: "conversation" }, el("div", { class: "filters" }, this.sessions), this.body);
  }

  show(source: Source | undefined): void {
    if (source !== this.source) {
      this.source = source;
      this.offered = -1;
      this.reset();
    }
    this.update();
  }

  private reset(): void {
    set(this.body);
    this.drawn.clear();
    this.first = -1;
  }

  private update(): void {
    const all = this.source?.items ?? new Map<string, Map<number, Item>>();
    if (all.size !== this.offered) {
      this.offered = all.size;
      const { value } = this.sessions;
      set(this.sessions, ...[...all.keys()].slice(0, 500).map((id) => {
        const title = this.source?.subagents.get(id);
        const option = el("option", {}, brief(title === undefined ? id : `${id} (subagent ${title})`, 60));
        option.value = id;
        return option;
      }));
      if (all.has(value)) this.sessions.value = value;
      this.sessions.hidden = all.size < 2;
    }
    const items = [...(all.get(this.sessions.value)?.values() ?? [])];
    if (items.length === 0) {
      set(this.body, el("p", { class: "empty" }, "There is no conversation yet."));
      this.drawn.clear();
      return;
    }
    if (this.drawn.size === 0) set(this.body);
    if (this.first < 0) this.first = Math.max(0, items.length - some);
    const panel = this.element.parentElement;
    const atEnd = !panel || panel.scrollTop + panel.clientHeight >= panel.scrollHeight - 20;
    // The plan stays at the end, wherever it began.
    const plan = this.body.querySelector(":scope > .plan");
    for (const [i, item] of items.entries()) {
      const before = this.drawn.get(item.index);
      if (before?.item === item || (i < this.first && item.kind !== "plan")) continue;
      const element = draw(item, items[i - 1]);
      if (before) before.element.replaceWith(element);
      else if (plan) plan.before(element);
      else this.body.append(element);
      this.drawn.set(item.index, { item, element });
    }
    if (this.first > 0 && !this.body.querySelector(".earlier")) this.body.prepend(this.earlier(items));
    if (atEnd && panel) panel.scrollTop = panel.scrollHeight;
  }

  private earlier(items: Item[]): HTMLElement {
    const button = el("button", { type: "button", class: "more earlier", onclick: () => {
      const until = this.first;
      this.first = Math.max(0, until - some);
      const elements: HTMLElement[] = [];
      for (const [i, item] of items.slice(this.first, until).entries()) {
        if (this.drawn.has(item.index)) continue;
        const element = draw(item, items[this.first + i - 1]);
        this.drawn.set(item.index, { item, element });
        elements.push(element);
      }
      button.replaceWith(...(this.first > 0 ? [this.earlier(items)] : []), ...elements);
    } }, `${count(this.first)} earlier`);
    return button;
  }
}

function draw(item: Item, before: Item | undefined): HTMLElement {
  const head = el("h3", {}, names[item.kind], item.title ? `: ${brief(item.title, 300)}` : "");
  if (item.status) head.append(el("span", { class: `status ${/^[a-z_]+$/.test(item.status) ? item.status : ""}` }, brief(item.status, 40)));
  const element = el("article", { class: `item ${item.kind}` }, head);
  if (item.turn > (before?.turn ?? 0)) element.prepend(el("p", { class: "turn" }, `Turn ${item.turn}`));
  if (item.text) element.append(long("div", "item-text", item.text, item.kind === "tool" || item.kind === "unknown" ? 1500 : 20_000));
  return element;
}
