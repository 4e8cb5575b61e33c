// Elements and their text. Text of agents and clients reaches the page only through this file: it is never parsed as
// markup, and characters that are invisible or change the order of others are shown as escapes.

/** Where only one view fits. The style sheet has the same number. */
export const narrow = matchMedia("(max-width: 800px)");

export type Child = Node | string | null | undefined | false;

type Attribute = string | number | boolean | null | undefined | ((event: any) => void);

/** Creates an element. An attribute whose name begins with "on" is a listener; false, null and undefined leave it out. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, visible(String(value)));
  }
  add(element, ...children);
  return element;
}

/** Appends children; strings are shown with put. */
export function add(element: Element, ...children: Child[]): void {
  for (const child of children) {
    if (typeof child === "string") put(element, child);
    else if (child) element.append(child);
  }
}

/** Replaces what an element contains. */
export function set(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  add(element, ...children);
}

// What programs may ignore according to Unicode, and letters and symbols that have no shape. Joiners stay after letters of
// scripts without capitals, marks and symbols, and one selector of a variant stays after a symbol: see package plain.
const unseen =
  /(?![\n\t])(?!(?<=[\p{Lo}\p{M}\p{So}\p{Sk}])[\u200c\u200d])(?!(?<=(?![\0-\xff])[\p{So}\p{Sm}\p{Sk}\p{Po}])[\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{DI}\p{VS}\u2800\u{1d159}\u{13441}\u{13442}\u{16fe4}]/gu;

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  return code > 0xffff ? `\\u{${digits}}` : "\\u" + digits.padStart(4, "0");
}

/** The text with what cannot be seen as escapes, for attributes. */
export function visible(text: string): string {
  return text.replace(unseen, escape);
}

/** Appends text to an element, with escapes marked as such. */
export function put(element: Element, text: string): void {
  let start = 0;
  for (const match of text.matchAll(unseen)) {
    if (match.index > start) element.append(text.slice(start, match.index));
    const mark = document.createElement("span");
    mark.className = "escape";
    mark.textContent = escape(match[0]);
    element.append(mark);
    start = match.index + match[0].length;
  }
  if (start < text.length) element.append(text.slice(start));
}

/** How many characters of a text are shown at once. */
const part = 20_000;

/** An element with a text of any length: the rest of a long one follows on demand, a part at a time. */
export function long(tag: "pre" | "span" | "div", className: string, text: string, shown = part): HTMLElement {
  const element = el(tag, { class: className });
  let end = 0;
  const more = el("button", { type: "button", class: "more", onclick: () => extend(part) });
  const extend = (length: number): void => {
    more.remove();
    const start = end;
    end = Math.min(text.length, cutAt(text, start + length));
    put(element, text.slice(start, end));
    if (end < text.length) {
      more.textContent = `… ${count(text.length - end)} more characters`;
      element.append(more);
    }
  };
  extend(shown);
  return element;
}

/** The text in one line, cut after a number of characters. */
export function brief(text: string, length: number): string {
  const line = text.slice(0, length + 1).replace(/\s+/g, " ");
  return line.length > length ? line.slice(0, cutAt(line, length)) + "…" : line;
}

/** Moves a cut so that it does not split a surrogate pair. */
function cutAt(text: string, at: number): number {
  const unit = text.charCodeAt(at - 1);
  return unit >= 0xd800 && unit < 0xdc00 ? at + 1 : at;
}

const numbers = new Intl.NumberFormat("en");

export function count(n: number): string {
  return numbers.format(n);
}

export function plural(n: number, word: string): string {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1000).toPrecision(3)} kB`;
  return `${(n / 1e6).toPrecision(3)} MB`;
}

/** A duration in milliseconds. */
export function duration(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function copyButton(label: string, text: () => string | Promise<string>): HTMLButtonElement {
  const button = el("button", {
    type: "button",
    onclick: async () => {
      try {
        // A shell, into which it may be pasted, would obey control characters: ESC[201~ ends what is pasted.
        await navigator.clipboard.writeText((await text()).replace(/[^\P{Cc}\n\t]/gu, escape));
        say(`${label}: copied`);
      } catch (error) {
        say(`${label}: ${error instanceof Error ? error.message : String(error)}`);
      }
    },
  }, label);
  return button;
}

/** Tells the user something short, and screen readers too. */
export function say(text: string): void {
  const status = document.getElementById("status");
  if (!status) return;
  set(status, text);
  status.classList.add("shown");
  clearTimeout(hide);
  hide = window.setTimeout(() => status.classList.remove("shown"), 4000);
}

let hide = 0;
