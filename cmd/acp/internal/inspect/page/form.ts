// A form for a value of a schema, checked while the user types.

import type { Document, Fault, Flat, Json, Schema } from "./schema";
import { bounds, escapeToken, isObject } from "./schema";
import { add, el, put, set } from "./text";

/** A part of a form: the field of one value. */
interface Field {
  element: HTMLElement;
  /** The value; undefined leaves it out. It throws if the user has typed what is no value. */
  value(): Json | undefined;
  /** Puts the fields of this value and its parts into a map, by their JSON pointers. */
  at(pointer: string, places: Map<string, Field>): void;
  fault(text: string): void;
}

export interface FormOptions {
  /** Values for members of these names. */
  suggestions: Record<string, Json>;
  changed?: () => void;
  /** Also shows the members that may be left out but have a default. */
  defaults?: boolean;
}

let ids = 0;

/** A form with two views of one value: fields, and JSON for what fields cannot express. */
export class Form {
  readonly element: HTMLElement;
  private root: Field;
  private readonly fields = el("div", { class: "fields" });
  private readonly problems = el("p", { class: "problems", role: "status" });
  private readonly json = el("textarea", { class: "code", rows: 12, spellcheck: false, "aria-label": "JSON", oninput: () => this.check() });
  private readonly raw = el("input", { type: "checkbox", onchange: () => this.switch() });

  constructor(private readonly document: Document, private readonly schema: Schema, value: Json | undefined, private readonly options: FormOptions) {
    this.element = el("div", { class: "form" },
      el("label", { class: "check" }, this.raw, "As JSON"), this.fields, this.json, this.problems);
    this.root = this.build(value ?? document.example(schema, options.suggestions));
    this.json.hidden = true;
  }

  private build(value: Json): Field {
    const root = create(this.document, this.schema, value, { ...this.options, changed: () => this.check() }, 0);
    set(this.fields, root.element);
    this.root = root;
    this.check();
    return root;
  }

  private switch(): void {
    if (this.raw.checked) {
      try {
        this.json.value = JSON.stringify(this.root.value() ?? null, null, 2);
      } catch {
        // what the fields contain is no value: the JSON of before stays
      }
    } else {
      try {
        this.build(JSON.parse(this.json.value) as Json);
      } catch {
        this.raw.checked = true;
      }
    }
    this.json.hidden = !this.raw.checked;
    this.fields.hidden = this.raw.checked;
    this.check();
  }

  /** The value. It throws if what the user has typed is none. */
  value(): Json {
    return this.raw.checked ? (JSON.parse(this.json.value) as Json) : (this.root.value() ?? null);
  }

  /** Checks the value and shows what is wrong. It reports whether nothing is. */
  check(): boolean {
    let faults: Fault[];
    try {
      faults = this.document.faults(this.schema, this.value());
    } catch (error) {
      faults = [{ pointer: "", text: error instanceof Error ? error.message : String(error) }];
    }
    const places = new Map<string, Field>();
    if (!this.raw.checked) this.root.at("", places);
    for (const [pointer, field] of places) field.fault(faults.find((f) => f.pointer === pointer)?.text ?? "");
    const first = faults.find((f) => !places.has(f.pointer) || f.pointer === "");
    set(this.problems, faults.length === 0 ? "Valid." : first ? `${first.pointer || "The value"}: ${first.text}` : `${faults.length} to correct.`);
    this.problems.classList.toggle("wrong", faults.length > 0);
    this.options.changed?.();
    void this.document.pending()?.then(() => this.check());
    return faults.length === 0;
  }
}

/** How deep fields are nested; deeper values are edited as JSON. */
const deepest = 12;

function create(document: Document, schema: Schema, value: Json | undefined, options: FormOptions, depth: number): Field {
  const flat = document.flatten(schema);
  if (flat.const !== undefined) return constant(flat.const);
  if (depth < deepest) {
    if (flat.unions.length > 0) {
      const names = (flat.unions[0] ?? []).map((s) => document.flatten(s).const);
      if (flat.properties.size === 0 && names.every((n) => n !== undefined)) return choice(names as Json[], value, options);
      return union(document, flat, value, options, depth);
    }
    if (flat.enum) return choice(flat.enum, value, options);
    const type = flat.types.find((t) => t !== "null");
    if (type === "boolean") return boolean(value, options);
    if (type === "integer" || type === "number") return number(flat, value, options);
    if (type === "string") return string(flat, value, options);
    if (type === "array" && flat.items) return array(document, flat.items, value, options, depth);
    if (flat.properties.size > 0) return object(document, flat, value, options, depth);
  }
  return anything(value, options);
}

/** A field of one control, with the text that says what is wrong with it. */
function simple(control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement, value: () => Json | undefined): Field {
  const id = `field-${++ids}`;
  control.id = id;
  const wrong = el("span", { class: "wrong", id: `${id}-wrong` });
  control.setAttribute("aria-describedby", `${id}-wrong`);
  const field: Field = {
    element: el("div", { class: "control" }, control, wrong),
    value,
    at: (pointer, places) => void places.set(pointer, field),
    fault: (text) => {
      if (wrong.textContent === text) return;
      set(wrong, text);
      control.setAttribute("aria-invalid", String(text !== ""));
    },
  };
  return field;
}

function constant(value: Json): Field {
  const field: Field = {
    element: el("code", {}, JSON.stringify(value)),
    value: () => value,
    at: (pointer, places) => void places.set(pointer, field),
    fault: () => {},
  };
  return field;
}

function choice(values: Json[], value: Json | undefined, options: FormOptions): Field {
  const select = el("select", { onchange: () => options.changed?.() });
  for (const v of values) select.append(el("option", { value: JSON.stringify(v) }, typeof v === "string" ? v : JSON.stringify(v)));
  if (value !== undefined && values.includes(value)) select.value = JSON.stringify(value);
  return simple(select, () => JSON.parse(select.value) as Json);
}

function boolean(value: Json | undefined, options: FormOptions): Field {
  const box = el("input", { type: "checkbox", checked: value === true, onchange: () => options.changed?.() });
  return simple(box, () => box.checked);
}

function number(flat: Flat, value: Json | undefined, options: FormOptions): Field {
  const [least, most] = bounds(flat);
  const input = el("input", {
    type: "number", step: flat.types.includes("number") ? "any" : 1, min: Number.isFinite(least) ? least : null, max: Number.isFinite(most) ? most : null,
    oninput: () => options.changed?.(),
  });
  if (typeof value === "number") input.value = String(value);
  return simple(input, () => input.value === "" ? null : Number(input.value));
}

function string(flat: Flat, value: Json | undefined, options: FormOptions): Field {
  const text = typeof value === "string" ? value : "";
  const input = el("textarea", { rows: text.includes("\n") || /text/i.test(flat.name) ? 3 : 1, spellcheck: false, oninput: () => options.changed?.() });
  input.value = text;
  return simple(input, () => input.value);
}

function anything(value: Json | undefined, options: FormOptions): Field {
  const input = el("textarea", { class: "code", rows: 2, spellcheck: false, oninput: () => options.changed?.() });
  input.value = JSON.stringify(value ?? {});
  return simple(input, () => JSON.parse(input.value) as Json);
}

function array(document: Document, items: Schema, value: Json | undefined, options: FormOptions, depth: number): Field {
  const list = el("ol", { class: "items" });
  let fields: Field[] = [];
  const wrong = el("span", { class: "wrong" });
  const insert = (item: Json): void => {
    const field = create(document, items, item, options, depth + 1);
    fields.push(field);
    const entry = el("li", {}, field.element, el("button", { type: "button", class: "remove", "aria-label": "Remove this element", onclick: () => {
      fields = fields.filter((f) => f !== field);
      entry.remove();
      options.changed?.();
    } }, "Remove"));
    list.append(entry);
  };
  for (const item of Array.isArray(value) ? value : []) insert(item);
  const grow = el("button", { type: "button", onclick: () => {
    insert(document.example(items, options.suggestions));
    options.changed?.();
  } }, "Add an element");
  const field: Field = {
    element: el("div", { class: "array" }, list, grow, wrong),
    value: () => fields.map((f) => f.value() ?? null),
    at: (pointer, places) => {
      places.set(pointer, field);
      fields.forEach((f, i) => f.at(`${pointer}/${i}`, places));
    },
    fault: (text) => set(wrong, text),
  };
  return field;
}

function union(document: Document, flat: Flat, value: Json | undefined, options: FormOptions, depth: number): Field {
  const [alternatives = [], ...others] = flat.unions;
  const nullable = flat.types.includes("null") || alternatives.some((s) => s.type === "null");
  // Alternatives that a value of another kind excludes, such as null, have no fields.
  const usable = alternatives.filter((s) => s.type !== "null");
  const select = el("select", { "aria-label": "Kind" });
  usable.forEach((s, i) => select.append(el("option", { value: i }, document.alternativeName(s))));
  if (nullable) select.append(el("option", { value: "null" }, "null"));
  const body = el("div", { class: "alternative" });
  let inner: Field;
  const choose = (v: Json | undefined): void => {
    const schema = usable[Number(select.value)];
    if (!schema) {
      inner = constant(null);
    } else {
      // The members that all alternatives share are fields of the chosen one.
      const shared: Schema = { properties: Object.fromEntries(flat.properties), required: [...flat.required], allOf: [schema, ...others.map((anyOf) => ({ anyOf }))] };
      const whole = flat.properties.size > 0 || others.length > 0 ? shared : schema;
      inner = create(document, whole, v ?? document.example(whole, options.suggestions), options, depth + 1);
    }
    set(body, inner.element);
  };
  const chosen = value === undefined ? undefined : document.choose(usable, value);
  select.value = value === null && nullable ? "null" : String(Math.max(0, chosen ? usable.indexOf(chosen) : 0));
  choose(value);
  select.addEventListener("change", () => {
    let before: Json | undefined;
    try {
      before = inner.value();
    } catch {
      before = undefined; // what was typed is not kept
    }
    const schema = usable[Number(select.value)];
    const example = schema && document.example(schema, options.suggestions);
    choose(isObject(before) && isObject(example) ? { ...shared(before, flat), ...example } : undefined);
    options.changed?.();
  });
  const field: Field = {
    element: el("div", { class: "union" }, select, body),
    value: () => inner.value(),
    at: (pointer, places) => inner.at(pointer, places),
    fault: (text) => inner.fault(text),
  };
  return field;
}

function shared(value: { [name: string]: Json }, flat: Flat): { [name: string]: Json } {
  return Object.fromEntries(Object.entries(value).filter(([name]) => flat.properties.has(name)));
}

function object(document: Document, flat: Flat, value: Json | undefined, options: FormOptions, depth: number): Field {
  const given = isObject(value) ? value : {};
  const body = el("div", { class: "members" });
  const wrong = el("span", { class: "wrong" });
  const fields = new Map<string, Field>();
  const offered: HTMLElement = el("div", { class: "offered" });
  const insert = (name: string, schema: Schema, v: Json | undefined): HTMLElement => {
    const field = create(document, schema, v ?? options.suggestions[name] ?? document.example(schema, options.suggestions), options, depth + 1);
    fields.set(name, field);
    const description = document.flatten(schema).description;
    const control = field.element.querySelector("input, select, textarea");
    const single = field.element.classList.contains("control") && control;
    const words = el("span", { class: "member-name" });
    put(words, schema.title ?? name);
    const help = description ? el("details", { class: "help" }, el("summary", { "aria-label": `About ${name}` }, "?"), el("p", {}, description)) : null;
    const entry = single
      ? el("div", { class: "member" }, el("label", { for: control.id }, words), help, field.element)
      : el("fieldset", { class: "member" }, el("legend", {}, words, " ", help), field.element);
    if (!flat.required.has(name)) {
      add(entry, el("button", { type: "button", class: "remove", "aria-label": `Leave out ${name}`, onclick: () => {
        fields.delete(name);
        entry.remove();
        offer(name, schema);
        options.changed?.();
      } }, "Leave out"));
    }
    return entry;
  };
  const offer = (name: string, schema: Schema): void => {
    const button = el("button", { type: "button", class: "offer", onclick: () => {
      button.remove();
      const entry = insert(name, schema, undefined);
      body.append(entry);
      entry.querySelector<HTMLElement>("input, select, textarea")?.focus();
      options.changed?.();
    } }, `+ ${name}`);
    offered.append(button);
  };
  // Required members first, then the others that have a value.
  const names = [...flat.properties.keys()].sort((a, b) => Number(flat.required.has(b)) - Number(flat.required.has(a)));
  for (const name of names) {
    const schema = flat.properties.get(name);
    if (!schema) continue;
    const preset = options.defaults && document.flatten(schema).default !== undefined;
    if (flat.required.has(name) || Object.hasOwn(given, name) || preset) body.append(insert(name, schema, given[name]));
    else offer(name, schema);
  }
  // Members that the schema does not have are kept.
  const unknown = Object.entries(given).filter(([name]) => !flat.properties.has(name));
  const field: Field = {
    element: el("div", { class: "object" }, body, offered, wrong),
    value: () => {
      const all: { [name: string]: Json } = {};
      for (const [name, f] of fields) {
        const v = f.value();
        if (v !== undefined) all[name] = v;
      }
      for (const [name, v] of unknown) all[name] = v;
      return all;
    },
    at: (pointer, places) => {
      places.set(pointer, field);
      for (const [name, f] of fields) f.at(`${pointer}/${escapeToken(name)}`, places);
    },
    fault: (text) => set(wrong, text),
  };
  return field;
}
