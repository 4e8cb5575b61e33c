// The capabilities of both sides: as claimed, and as the messages show.

import type { SideState } from "./protocol";
import type { Link } from "./link";
import type { Source } from "./model";
import type { Document, Json, Schema } from "./schema";
import { isObject } from "./schema";
import { add, brief, count, el, set } from "./text";

export class Capabilities {
  readonly element = el("div", { class: "capabilities" });
  private drawn = "";

  constructor(private readonly link: Link) {}

  show(sources: Source[]): void {
    const documents = sources.map((s) => this.link.schema(s.state?.version === 2 ? 2 : 1));
    const key = JSON.stringify(sources.map((s, i) => [s.id, s.state?.sides, s.state?.version, Boolean(documents[i])]));
    if (key === this.drawn) return;
    this.drawn = key;
    set(this.element, ...(["agent", "client"] as const).map((side) => this.section(side, sources, documents[0])));
  }

  private section(side: "client" | "agent", sources: Source[], document: Document | undefined): HTMLElement {
    const states = sources.map((s) => s.state?.sides.find((x) => x.side === side));
    const paths = new Map<string, string>(); // with their descriptions
    const definition = document?.definition(side === "agent" ? "AgentCapabilities" : "ClientCapabilities");
    if (document && definition) describe(document, definition, "", paths, 0);
    for (const state of states) {
      for (const path of claims(state).keys()) paths.set(path, paths.get(path) ?? "");
      for (const o of state?.observed ?? []) if (o.capability) paths.set(o.capability, paths.get(o.capability) ?? "");
    }
    const names = sources.length > 1;
    const table = el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Capability"),
      ...(names ? sources.map((s) => el("th", { scope: "col" }, brief(s.info.name, 40))) : ["Claimed", "Used"].map((w) => el("th", { scope: "col" }, w))))));
    const body = el("tbody", {});
    for (const path of [...paths.keys()].slice(0, 500)) {
      const values = states.map((s) => claims(s).get(path));
      const uses = states.map((s) => s?.observed.filter((o) => o.capability === path) ?? []);
      // What only contains others says nothing.
      if (values.every((v) => v === undefined) && uses.every((u) => u.length === 0) && [...paths.keys()].some((p) => p.startsWith(`${path}.`))) continue;
      const row = el("tr", {}, el("th", { scope: "row", title: paths.get(path) || null }, brief(path, 100)));
      states.forEach((_, i) => {
        const value = values[i];
        const used = uses[i] ?? [];
        const unclaimed = used.some((o) => !o.claimed);
        const claimed = el("td", { class: value === undefined || value === "no" ? "no" : "yes" }, value ?? "–");
        const words = used.map((o) => `${o.method} × ${count(o.count)}`).join(", ");
        const cell = names ? el("div", {}) : el("td", {});
        if (unclaimed) cell.className = "wrong";
        add(cell, words, unclaimed && " (not claimed)");
        if (names) claimed.append(cell);
        row.append(claimed, names ? "" : cell);
      });
      if (names && new Set(values.map((v) => v ?? "no")).size > 1) row.classList.add("differs");
      body.append(row);
    }
    table.append(body);
    const free = states.map((s) => s?.observed.filter((o) => !o.capability) ?? []);
    return el("section", { "aria-label": `Capabilities of the ${side}` },
      el("h2", {}, side === "agent" ? "Agent" : "Client"),
      ...states.map((s, i) => el("p", {}, names && `${brief(sources[i]?.info.name ?? "", 60)}: `, s?.info ? info(s.info) : "It has not introduced itself.")),
      el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `Capabilities of the ${side}` }, table),
      ...free.map((f, i) => f.length > 0 && el("p", {}, names && `${brief(sources[i]?.info.name ?? "", 60)}: `, "Without a capability: ",
        f.map((o) => `${o.method} × ${count(o.count)}`).join(", "))));
  }
}

function info(value: unknown): string {
  const v = value as Json;
  if (!isObject(v)) return brief(JSON.stringify(v), 200);
  return brief([v["title"] ?? v["name"], v["version"]].filter((x) => typeof x === "string").join(" ") || JSON.stringify(v), 200);
}

/** What a side claims, by path. */
function claims(state: SideState | undefined): Map<string, string> {
  const all = new Map<string, string>();
  const walk = (value: Json | undefined, path: string, depth: number): void => {
    if (isObject(value) && depth < 6) {
      if (path) all.set(path, "yes");
      for (const [name, v] of Object.entries(value).slice(0, 200)) if (name !== "_meta") walk(v, path ? `${path}.${name}` : name, depth + 1);
      return;
    }
    if (value === undefined || value === null) return;
    all.set(path, value === true ? "yes" : value === false ? "no" : brief(JSON.stringify(value), 60));
  };
  walk(state?.claimed as Json | undefined, "", 0);
  return all;
}

/** The paths of all capabilities that the schema has. */
function describe(document: Document, schema: Schema, path: string, paths: Map<string, string>, depth: number): void {
  const flat = document.flatten(schema);
  if (path) paths.set(path, flat.description);
  if (depth > 5) return;
  for (const [name, property] of flat.properties) {
    if (name !== "_meta") describe(document, property, path ? `${path}.${name}` : name, paths, depth + 1);
  }
}
