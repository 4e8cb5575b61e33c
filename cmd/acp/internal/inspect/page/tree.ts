// JSON as a tree, with the schema's description of each member and the findings at their place.

import type { Finding } from "./protocol";
import type { Node } from "./json";
import { member } from "./json";
import type { Document, Flat, Json, Schema } from "./schema";
import { escapeToken } from "./schema";
import { severity } from "./model";
import { add, count, el, long, put } from "./text";

export interface TreeOptions {
  document?: Document | undefined;
  /** The schemas of the values at these pointers, from which those of their parts follow. */
  schemas: Map<string, Schema>;
  findings: Finding[];
  /** Descriptions of members that no schema has. */
  descriptions?: Record<string, string>;
}

/** How many children are drawn at once. */
const some = 100;

/** How many nodes are open at first. */
const firstOpen = 400;

export class Tree {
  readonly element: HTMLElement;
  private readonly places = new Map<string, HTMLElement>();
  private opened = 0;
  /** For the pointer of each finding: that of the nearest value which exists. */
  private readonly existing: Map<string, string>;

  constructor(private readonly text: string, root: Node, private readonly options: TreeOptions) {
    this.existing = locate(root, options.findings);
    this.element = el("div", { class: "tree", role: "tree", "aria-label": "Message", onkeydown: (e: KeyboardEvent) => this.key(e) });
    this.element.append(this.node(root, "", undefined, 1, undefined));
    this.element.querySelector<HTMLElement>("[role=treeitem]")?.setAttribute("tabindex", "0");
  }

  /** Shows the value at a pointer, or the nearest one that contains it. */
  show(pointer: string): void {
    for (const at of prefixes(pointer)) {
      const item = this.places.get(at);
      if (!item) break;
      if (at !== pointer) setOpen(item, true);
    }
    const item = this.nearest(pointer);
    item.scrollIntoView({ block: "center" });
    this.focus(item);
  }

  private nearest(pointer: string): HTMLElement {
    return prefixes(pointer).map((at) => this.places.get(at)).findLast((item) => item) ?? this.element;
  }

  private focus(item: HTMLElement): void {
    for (const other of this.element.querySelectorAll("[tabindex='0'][role=treeitem]")) other.setAttribute("tabindex", "-1");
    item.setAttribute("tabindex", "0");
    item.focus();
  }

  private key(event: KeyboardEvent): void {
    const item = (event.target as HTMLElement).closest<HTMLElement>("[role=treeitem]");
    if (!item || event.ctrlKey || event.metaKey || event.altKey || event.target !== item) return;
    const visible = [...this.element.querySelectorAll<HTMLElement>("[role=treeitem]")].filter((i) => i.offsetParent !== null);
    const at = visible.indexOf(item);
    const open = item.getAttribute("aria-expanded");
    switch (event.key) {
      case "ArrowDown": this.focus(visible[at + 1] ?? item); break;
      case "ArrowUp": this.focus(visible[at - 1] ?? item); break;
      case "Home": this.focus(visible[0] ?? item); break;
      case "End": this.focus(visible.at(-1) ?? item); break;
      case "ArrowRight":
        if (open === "false") setOpen(item, true);
        else this.focus(item.querySelector<HTMLElement>("[role=treeitem]") ?? item);
        break;
      case "ArrowLeft":
        if (open === "true") setOpen(item, false);
        else this.focus(item.parentElement?.closest<HTMLElement>("[role=treeitem]") ?? item);
        break;
      case "Enter": case " ":
        item.classList.toggle("described");
        break;
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private node(node: Node, pointer: string, inherited: Schema | undefined, level: number, key: string | number | undefined): HTMLElement {
    const { document } = this.options;
    const schema = this.options.schemas.get(pointer) ?? inherited;
    let flat: Flat | undefined;
    if (document && schema) flat = document.of(schema, plain(this.text, node));
    const item = el("div", { role: "treeitem", class: "node", "aria-level": level, tabindex: -1, "aria-selected": false });
    this.places.set(pointer, item);
    const line = el("div", { class: "line" });
    line.style.paddingInlineStart = `${Math.min(level - 1, 12) * 14 + 16}px`;
    const said = el("span", { class: "said" });
    line.append(said);
    item.append(line);
    if (key !== undefined) add(said, el("span", { class: typeof key === "number" ? "index" : "name" }, typeof key === "number" ? String(key) : `${key}`), ": ");
    const description = flat?.description || (typeof key === "string" && level === 2 ? this.options.descriptions?.[key] : "") || "";
    const here = this.options.findings.filter((f) => this.place(f.pointer) === pointer);
    const inside = this.options.findings.some((f) => this.place(f.pointer).startsWith(pointer + "/"));
    if (node.kind === "object" || node.kind === "array") {
      const array = node.kind === "array";
      const open = level <= 6 && this.opened < firstOpen || inside;
      this.opened += node.children.length;
      item.setAttribute("aria-expanded", String(node.children.length > 0 && open));
      line.prepend(el("button", {
        type: "button", class: "twist", tabindex: -1, "aria-label": "Open or close", hidden: node.children.length === 0,
        onclick: () => setOpen(item, item.getAttribute("aria-expanded") !== "true"),
      }));
      add(said, el("span", { class: "punctuation" }, array ? `[${count(node.children.length)}]` : node.children.length ? "{…}" : "{}"));
      if (flat?.name) add(said, " ", el("span", { class: "type" }, flat.name));
      const group = el("div", { role: "group" });
      item.append(group);
      let drawn = 0;
      const draw = (): void => {
        const until = Math.min(node.children.length, Math.max(drawn + some, inside && drawn === 0 ? this.lastWanted(pointer, node) : 0));
        for (; drawn < until; drawn++) {
          const child = node.children[drawn];
          if (!child) break;
          const name = array ? drawn : (child.name ?? "");
          const childSchema = flat && document?.child(flat, name);
          group.append(this.node(child, `${pointer}/${escapeToken(String(name))}`, childSchema, level + 1, name));
        }
        if (drawn < node.children.length) {
          const more = el("button", { type: "button", class: "more", onclick: () => {
            more.remove();
            draw();
          } }, `… ${count(node.children.length - drawn)} more`);
          group.append(more);
        }
      };
      // Children are drawn when they are first seen.
      (item as Opening).draw = () => {
        if (drawn === 0) draw();
      };
      if (open) (item as Opening).draw?.();
    } else {
      const written = this.text.slice(node.start, node.end);
      said.append(long("span", `value ${node.kind}`, node.kind === "string" ? readable(written) : node.kind === "deep" ? `too deep to show: ${written}` : written, 2000));
    }
    if (description) {
      const short = el("span", { class: "description" });
      put(short, firstSentence(description));
      line.append(short);
      item.append(long("div", "whole-description", description));
      line.addEventListener("click", (event) => {
        if (!(event.target as HTMLElement).closest("button") && getSelection()?.isCollapsed !== false) item.classList.toggle("described");
      });
    }
    for (const finding of here) {
      item.classList.add("at-fault", severity([finding]));
      const rest = finding.pointer.slice(pointer.length);
      const fault = el("div", { class: `fault ${severity([finding])}` }, `${finding.rule}: ${finding.message}`, rest && ` (at ${rest})`);
      fault.style.marginInlineStart = line.style.paddingInlineStart;
      line.after(fault);
    }
    return item;
  }

  /** The pointer at which a finding is shown. */
  private place(pointer: string): string {
    return this.existing.get(pointer) ?? pointer;
  }

  /** How many elements must be drawn so that all findings in an array can be seen. */
  private lastWanted(pointer: string, node: Node): number {
    let last = 0;
    for (const f of this.options.findings) {
      const index = Number(f.pointer.slice(pointer.length + 1).split("/")[0]);
      if (node.kind === "array" && f.pointer.startsWith(pointer + "/") && index < node.children.length) last = Math.max(last, index + 1);
    }
    return last;
  }
}

type Opening = HTMLElement & { draw?: () => void };

function setOpen(item: HTMLElement, open: boolean): void {
  if (!item.hasAttribute("aria-expanded")) return;
  if (open) (item as Opening).draw?.();
  item.setAttribute("aria-expanded", String(open));
}

function prefixes(pointer: string): string[] {
  const all = [""];
  let at = "";
  for (const token of pointer.split("/").slice(1)) all.push(at += `/${token}`);
  return all;
}

/** A node as a value; only as much of it as the choice between alternatives can need. */
function plain(text: string, node: Node): Json {
  const written = text.slice(node.start, Math.min(node.end, node.start + 200_000));
  if (node.kind !== "deep" && written.length === node.end - node.start) {
    try {
      return JSON.parse(written) as Json;
    } catch {
      return null;
    }
  }
  return node.kind === "array" ? [] : node.kind === "object" ? shallow(text, node) : "";
}

/** The members of a large object that are small. */
function shallow(text: string, node: Node): Json {
  const value: { [name: string]: Json } = {};
  for (const child of node.children) if (child.end - child.start < 1000) value[child.name ?? ""] = plain(text, child);
  return value;
}

/** A string as it is written, but with the characters that were escaped without need, and with its line breaks. */
function readable(written: string): string {
  return written.length > 1_000_000 ? written : JSON.stringify(JSON.parse(written)).replace(/\\\\|\\n/g, (m) => m === "\\n" ? "\\n\n" : m);
}

function firstSentence(description: string): string {
  const paragraph = description.split("\n\n", 1)[0] ?? "";
  return /^.*?[.!](?=\s|$)/s.exec(paragraph)?.[0].replace(/\s+/g, " ") ?? paragraph;
}

function locate(root: Node, findings: Finding[]): Map<string, string> {
  const places = new Map<string, string>();
  for (const { pointer } of findings) {
    let node: Node | undefined = root;
    let found = "";
    for (const token of pointer.split("/").slice(1)) {
      const name = token.replace(/~1/g, "/").replace(/~0/g, "~");
      node = node.kind === "array" ? node.children[Number(name)] : member(node, name);
      if (!node) break;
      found += `/${token}`;
    }
    places.set(pointer, found);
  }
  return places;
}
