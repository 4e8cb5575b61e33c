// A list that draws only the rows that can be seen, so that its length costs nothing.

import { el } from "./text";

export interface Rows {
  /** How many rows there are. */
  length(): number;
  /** Draws a row into an element, which may have held another row. */
  draw(index: number, element: HTMLElement): void;
  /** The user has chosen a row. */
  chosen(index: number): void;
  /** The user has opened a row with Enter or a second click. */
  opened(index: number): void;
}

/** The most pixels that browsers lay out reliably in one element. Longer lists are scrolled in proportion. */
const tallest = 15_000_000;

/** How many rows are drawn above and below those that can be seen. */
const margin = 6;

export class List {
  readonly element: HTMLElement;
  private readonly canvas: HTMLElement;
  private readonly spare: HTMLElement[] = [];
  private readonly drawn = new Map<number, HTMLElement>();
  private frame = 0;
  private stale = false;
  /** The selected row, or -1. */
  current = -1;
  /** Whether the list stays at its end while it grows. */
  follow = false;

  constructor(private readonly rows: Rows, private readonly height: number, label: string, private readonly id: string) {
    this.canvas = el("div", { class: "canvas", role: "presentation" });
    this.element = el("div", {
      class: "list", role: "listbox", tabindex: 0, "aria-label": label, id,
      onscroll: () => {
        const { scrollTop, clientHeight, scrollHeight } = this.element;
        this.follow = scrollTop + clientHeight >= scrollHeight - 2;
        this.schedule();
      },
      onkeydown: (event: KeyboardEvent) => this.key(event),
    }, this.canvas);
    new ResizeObserver(() => this.schedule()).observe(this.element);
  }

  /** Draws again, because rows were added, or all changed. */
  changed(all: boolean): void {
    this.stale ||= all;
    this.schedule();
  }

  select(index: number, open = false): void {
    if (this.rows.length() === 0) return;
    this.current = Math.max(0, Math.min(index, this.rows.length() - 1));
    this.show(this.current);
    this.changed(true);
    if (open) this.rows.opened(this.current);
    else this.rows.chosen(this.current);
  }

  /** Scrolls so that a row can be seen. */
  show(index: number): void {
    const view = this.element.clientHeight;
    const top = index * this.height;
    const at = this.offset();
    if (top >= at && top + this.height <= at + view) return;
    this.scrollTo(Math.max(0, top - Math.max(0, (view - this.height) / 2)));
  }

  end(): void {
    this.resize();
    this.element.scrollTop = this.element.scrollHeight;
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
    const step = steps[event.key];
    if (step !== undefined) this.select(this.current + step);
    else if (event.key === "Home") this.select(0);
    else if (event.key === "End") this.select(this.rows.length() - 1);
    else if ((event.key === "Enter" || event.key === " ") && this.current >= 0) this.rows.opened(this.current);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private full(): number {
    return this.rows.length() * this.height;
  }

  /** How far the list is scrolled, in pixels of its full height. */
  private offset(): number {
    const { scrollTop, clientHeight } = this.element;
    const full = this.full();
    if (full <= tallest) return scrollTop;
    return (scrollTop / (tallest - clientHeight)) * (full - clientHeight);
  }

  private scrollTo(offset: number): void {
    this.resize();
    const { clientHeight } = this.element;
    const full = this.full();
    this.element.scrollTop = full <= tallest ? offset : (offset / (full - clientHeight)) * (tallest - clientHeight);
  }

  private resize(): void {
    const height = `${Math.min(this.full(), tallest)}px`;
    if (this.canvas.style.height !== height) this.canvas.style.height = height;
  }

  private draw(): void {
    this.resize();
    if (this.follow) this.element.scrollTop = this.element.scrollHeight;
    const offset = this.offset();
    const view = this.element.clientHeight;
    const first = Math.max(0, Math.floor(offset / this.height) - margin);
    const last = Math.min(this.rows.length(), Math.ceil((offset + view) / this.height) + margin);
    for (const [index, element] of this.drawn) {
      if (index >= first && index < last && !this.stale) continue;
      this.drawn.delete(index);
      this.spare.push(element);
    }
    this.stale = false;
    const shift = this.element.scrollTop - offset;
    const total = String(this.rows.length());
    for (let index = first; index < last; index++) {
      let element = this.drawn.get(index);
      if (!element) {
        element = this.spare.shift() ?? this.create();
        element.id = `${this.id}-${index}`;
        element.setAttribute("aria-posinset", String(index + 1));
        element.dataset["index"] = String(index);
        element.setAttribute("aria-selected", String(index === this.current));
        this.rows.draw(index, element);
        this.drawn.set(index, element);
      }
      element.setAttribute("aria-setsize", total);
      element.style.transform = `translateY(${index * this.height + shift}px)`;
      element.hidden = false;
    }
    for (const element of this.spare) element.hidden = true;
    if (this.drawn.has(this.current)) this.element.setAttribute("aria-activedescendant", `${this.id}-${this.current}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  private create(): HTMLElement {
    const element = el("div", { role: "option", class: "row" });
    element.style.height = `${this.height}px`;
    const index = (): number => Number(element.dataset["index"]);
    element.addEventListener("click", () => this.select(index()));
    element.addEventListener("dblclick", () => this.select(index(), true));
    this.canvas.append(element);
    return element;
  }
}
