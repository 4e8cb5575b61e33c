// What a JSON schema says about a value: the descriptions of its parts, what is wrong with it, and an example. It knows
// the keywords that the protocol's schemas use.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  title?: string;
  description?: string;
  type?: string | string[];
  const?: Json;
  enum?: Json[];
  default?: Json;
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: boolean | Schema;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  not?: Schema;
}

/** A fault of a value: the JSON pointer of the part at fault, and why. */
export interface Fault {
  pointer: string;
  text: string;
}

/** A schema with its references and allOf resolved. Alternatives are left to the reader. */
export interface Flat {
  name: string;
  description: string;
  types: string[];
  const?: Json;
  enum?: Json[];
  default?: Json;
  format: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minItems?: number;
  properties: Map<string, Schema>;
  required: Set<string>;
  additional?: Schema;
  items?: Schema;
  /** Each element is a list of alternatives, of which a value is one. */
  unions: Schema[][];
}

export function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function escapeToken(name: string): string {
  return name.replace(/~/g, "~0").replace(/\//g, "~1");
}

export function typeOf(value: Json | undefined): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function own<T>(record: Record<string, T> | undefined, name: string): T | undefined {
  return record && Object.hasOwn(record, name) ? record[name] : undefined;
}

/** How deep schemas and values are followed. Deeper values are not examined. */
const deepest = 100;

/** How many milliseconds a value is examined. Alternatives in each other would take 2 to the power of their depth. */
const longest = 300;

export class Document {
  /** Whether texts match patterns, by both; a promise while the answer is not known. */
  private readonly matched = new Map<string, boolean | Promise<void>>();

  /** A document whose patterns are compared by a function: the page does not run them, because it could take forever. */
  constructor(private readonly root: Schema, private readonly match?: (pattern: string, text: string) => Promise<boolean>) {}

  /** Waits for what faults did not know yet, if there is something: then there may be more of them. */
  pending(): Promise<unknown> | undefined {
    const waiting = [...this.matched.values()].filter((v) => typeof v === "object");
    return waiting.length > 0 ? Promise.all(waiting) : undefined;
  }

  private until = 0;

  private matches(pattern: string, text: string): boolean {
    const key = JSON.stringify([pattern, text]);
    const known = this.matched.get(key);
    if (known === undefined && this.match) {
      this.matched.set(key, this.match(pattern, text).then((matches) => void this.matched.set(key, matches)));
    }
    return known !== false;
  }

  /** The definition of a name, as a schema. */
  definition(name: string): Schema | undefined {
    return own(this.root.$defs, name) && { $ref: "#/$defs/" + name };
  }

  private resolve(ref: string): [string, Schema] | undefined {
    const name = ref.replace(/^#\/\$defs\//, "");
    const schema = own(this.root.$defs, name);
    return schema && [name, schema];
  }

  flatten(schema: Schema): Flat {
    const flat: Flat = { name: "", description: "", types: [], format: "", properties: new Map(), required: new Set(), unions: [] };
    this.merge(flat, schema, 0);
    return flat;
  }

  private merge(flat: Flat, schema: Schema, depth: number): void {
    if (depth > deepest) return;
    flat.description ||= schema.description ?? "";
    flat.name ||= schema.title ?? "";
    if (schema.type !== undefined) flat.types = [schema.type].flat();
    if (schema.const !== undefined) flat.const = schema.const;
    if (schema.enum) flat.enum = schema.enum;
    if (schema.default !== undefined && flat.default === undefined) flat.default = schema.default;
    flat.format ||= schema.format ?? "";
    for (const key of ["minimum", "maximum", "minLength", "maxLength", "minItems"] as const) {
      const value = schema[key];
      if (value !== undefined) flat[key] = value;
    }
    if (schema.pattern !== undefined) flat.pattern = schema.pattern;
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const before = flat.properties.get(name);
      flat.properties.set(name, before ? { allOf: [before, property] } : property);
    }
    for (const name of schema.required ?? []) flat.required.add(name);
    if (typeof schema.additionalProperties === "object") flat.additional = schema.additionalProperties;
    if (typeof schema.items === "object") flat.items = schema.items;
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives) {
      const some = alternatives.filter((s) => s.type !== "null");
      if (some.length === 1 && some[0]) {
        this.merge(flat, some[0], depth + 1);
        if (some.length < alternatives.length) flat.types = [...flat.types, "null"];
      } else {
        flat.unions.push(alternatives);
      }
    }
    if (schema.$ref !== undefined) {
      const found = this.resolve(schema.$ref);
      if (found) {
        if (!schema.title) flat.name ||= found[0];
        this.merge(flat, found[1], depth + 1);
      }
    }
    for (const part of schema.allOf ?? []) this.merge(flat, part, depth + 1);
  }

  /** Whether the constants of an alternative, which tell it from others, are those of the value. Undefined if it has none. */
  private tagged(schema: Schema, value: Json): boolean | undefined {
    const flat = this.flatten(schema);
    if (flat.const !== undefined) return flat.const === value;
    if (flat.enum) return flat.enum.includes(value);
    let known: boolean | undefined;
    for (const [name, property] of flat.properties) {
      const tag = this.flatten(property).const;
      if (tag === undefined || !flat.required.has(name)) continue;
      if (!isObject(value) || own(value, name) !== tag) return false;
      known = true;
    }
    return known;
  }

  /** The alternative that a value is meant to be: the one of its tag, otherwise the first one that it satisfies. */
  choose(alternatives: Schema[], value: Json): Schema | undefined {
    const tags = alternatives.map((s) => this.tagged(s, value));
    const byTag = tags.indexOf(true);
    if (byTag >= 0) return alternatives[byTag];
    const open = alternatives.filter((_, i) => tags[i] === undefined);
    return open.find((s) => this.faults(s, value).length === 0) ?? open.find((s) => this.allows(s, value));
  }

  private allows(schema: Schema, value: Json): boolean {
    const { types } = this.flatten(schema);
    return types.length === 0 || types.some((t) => isType(t, value));
  }

  /** The name of an alternative for people: its tag, or its title. */
  alternativeName(schema: Schema): string {
    const flat = this.flatten(schema);
    if (flat.const !== undefined) return String(flat.const);
    for (const [name, property] of flat.properties) {
      const tag = this.flatten(property).const;
      if (tag !== undefined && flat.required.has(name)) return String(tag);
    }
    return flat.name || flat.types.join(" or ") || "any value";
  }

  /** The schema of a value with the alternatives that it chose merged in. */
  of(schema: Schema, value: Json): Flat {
    const flat = this.flatten(schema);
    for (let depth = 0; flat.unions.length > 0 && depth < deepest; depth++) {
      const chosen = this.choose(flat.unions.shift() ?? [], value);
      if (!chosen) continue;
      const part = this.flatten(chosen);
      const description = part.description || flat.description;
      this.merge(flat, chosen, 0);
      flat.description = description;
    }
    return flat;
  }

  /** The schema of a member or element of a value, or undefined if the schema does not describe it. */
  child(flat: Flat, key: string | number): Schema | undefined {
    if (typeof key === "number") return flat.items;
    return flat.properties.get(key) ?? flat.additional;
  }

  /** What is wrong with a value. */
  faults(schema: Schema, value: Json, pointer = "", depth = 0): Fault[] {
    const now = performance.now();
    if (depth === 0) this.until = now + longest;
    if (depth > deepest || now > this.until) return [];
    const found: Fault[] = [];
    const fault = (text: string, at = pointer): void => void found.push({ pointer: at, text });
    const into = (s: Schema, v: Json, at = pointer): void => void found.push(...this.faults(s, v, at, depth + 1));
    if (schema.$ref !== undefined) {
      const target = this.resolve(schema.$ref);
      if (target) into(target[1], value);
    }
    for (const part of schema.allOf ?? []) into(part, value);
    if (schema.type !== undefined) {
      const types = [schema.type].flat();
      if (!types.some((t) => isType(t, value))) {
        fault(`It must be ${types.map((t) => t === "null" ? t : article(t)).join(" or ")}.`);
        return found;
      }
    }
    if (schema.const !== undefined && JSON.stringify(schema.const) !== JSON.stringify(value)) fault(`It must be ${JSON.stringify(schema.const)}.`);
    if (schema.enum && !schema.enum.includes(value)) fault(`It must be one of ${schema.enum.map((v) => JSON.stringify(v)).join(", ")}.`);
    if (typeof value === "number") {
      const [least, most] = bounds(schema);
      if (value < least) fault(`It must be at least ${least}.`);
      if (value > most) fault(`It must be at most ${most}.`);
    }
    if (typeof value === "string") {
      const length = [...value].length;
      if (length < (schema.minLength ?? 0)) fault(schema.minLength === 1 ? "It must not be empty." : `It must have at least ${schema.minLength} characters.`);
      if (length > (schema.maxLength ?? Infinity)) fault(`It must have at most ${schema.maxLength} characters.`);
      if (schema.pattern !== undefined && !this.matches(schema.pattern, value)) fault(`It must match ${schema.pattern}.`);
    }
    if (Array.isArray(value)) {
      if (value.length < (schema.minItems ?? 0)) fault(`It must have at least ${schema.minItems} elements.`);
      if (value.length > (schema.maxItems ?? Infinity)) fault(`It must have at most ${schema.maxItems} elements.`);
      const items = schema.items;
      if (typeof items === "object") value.forEach((v, i) => into(items, v, `${pointer}/${i}`));
    }
    if (isObject(value)) {
      for (const name of schema.required ?? []) {
        if (!Object.hasOwn(value, name)) fault("It is required.", `${pointer}/${escapeToken(name)}`);
      }
      for (const [name, v] of Object.entries(value)) {
        const at = `${pointer}/${escapeToken(name)}`;
        const property = own(schema.properties, name);
        if (property) into(property, v, at);
        else if (typeof schema.additionalProperties === "object") into(schema.additionalProperties, v, at);
        else if (schema.additionalProperties === false) fault("The schema does not have it.", at);
      }
    }
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives && !alternatives.some((s) => this.faults(s, value, pointer, depth + 1).length === 0)) {
      const tags = alternatives.map((s) => this.tagged(s, value));
      const meant = alternatives[tags.indexOf(true)]
        ?? alternatives.filter((s, i) => tags[i] !== false && s.type !== "null").find((s) => this.allows(s, value))
        ?? (alternatives.length <= 2 ? alternatives.find((s) => s.type !== "null") : undefined);
      if (meant) into(meant, value);
      else fault(`It must be one of ${alternatives.map((s) => this.alternativeName(s)).join(", ")}.`);
    }
    // When the time is over, nothing more is found, which says nothing about the value.
    if (schema.not && this.faults(schema.not, value, pointer, depth + 1).length === 0 && performance.now() <= this.until) fault("The schema excludes this value.");
    return found;
  }

  /** A copy of a value in which the part at a pointer is one that the schema allows, or undefined if there is none such. */
  correct(schema: Schema, value: Json, pointer: string): Json | undefined {
    const copy = structuredClone(value);
    const tokens = pointer.split("/").slice(1).map((t) => t.replace(/~1/g, "/").replace(/~0/g, "~"));
    let of = schema;
    let parent: Json = copy;
    for (const [i, token] of tokens.entries()) {
      const at = this.child(this.of(of, parent), Array.isArray(parent) ? Number(token) : token);
      if (i < tokens.length - 1) {
        const next: Json | undefined = Array.isArray(parent) ? parent[Number(token)] : isObject(parent) ? own(parent, token) : undefined;
        if (next === undefined || !at) return undefined;
        [parent, of] = [next, at];
        continue;
      }
      if (!at && isObject(parent) && Object.hasOwn(parent, token)) delete parent[token];
      else if (!at) return undefined;
      else if (Array.isArray(parent)) parent[Number(token)] = this.example(at);
      else if (isObject(parent)) parent[token] = this.example(at);
    }
    return tokens.length > 0 && !this.faults(schema, copy).some((f) => f.pointer.startsWith(pointer)) ? copy : undefined;
  }

  /** A small value that the schema allows. Suggestions are values for members of these names. */
  example(schema: Schema, suggestions: Record<string, Json> = {}, depth = 0): Json {
    const flat = this.flatten(schema);
    if (flat.const !== undefined) return flat.const;
    if (flat.default !== undefined && flat.unions.length === 0) return flat.default;
    if (flat.enum) return flat.enum[0] ?? null;
    if (flat.unions.length > 0 && flat.properties.size === 0 && depth < 20) {
      const first = flat.unions[0]?.[0];
      return first ? this.example(first, suggestions, depth + 1) : null;
    }
    switch (flat.types[0]) {
      case "string": return flat.format === "uri" ? "file:///" : "";
      case "integer": case "number": return flat.minimum ?? 0;
      case "boolean": return false;
      case "array": {
        const item = flat.items;
        return item && (flat.minItems ?? 0) > 0 ? [this.example(item, suggestions, depth + 1)] : [];
      }
      case "object": case undefined: {
        if (depth > 20) return {};
        const value: { [name: string]: Json } = {};
        for (const [name, property] of flat.properties) {
          if (flat.required.has(name)) value[name] = own(suggestions, name) ?? this.example(property, suggestions, depth + 1);
        }
        for (const union of flat.unions) {
          const first = union[0] && this.example(union[0], suggestions, depth + 1);
          if (isObject(first)) Object.assign(value, first);
        }
        return value;
      }
    }
    return null;
  }
}

/** The bounds of a number, which the formats of integers have too. */
export function bounds(schema: { format?: string; minimum?: number; maximum?: number }): [number, number] {
  const width = /^(u?)int(\d+)$/.exec(schema.format ?? "");
  let least = -Infinity;
  let most = Infinity;
  if (width) {
    const bits = Number(width[2]);
    least = width[1] ? 0 : -(2 ** (bits - 1));
    most = 2 ** (width[1] ? bits : bits - 1) - 1;
  }
  return [Math.max(least, schema.minimum ?? -Infinity), Math.min(most, schema.maximum ?? Infinity)];
}

function isType(type: string, value: Json): boolean {
  const is = typeOf(value);
  return is === type || (type === "number" && is === "integer");
}

function article(type: string): string {
  return (/^[aio]/.test(type) ? "an " : "a ") + type;
}
