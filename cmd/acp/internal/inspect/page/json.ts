// JSON as it was written: numbers keep their digits, and members that occur twice are both there.

export interface Node {
  kind: "object" | "array" | "string" | "number" | "literal" | "deep";
  /** The name in its object. */
  name?: string;
  /** The text in the document: [start, end). */
  start: number;
  end: number;
  /** Of an object and an array. */
  children: Node[];
}

/** How many levels are read. What is deeper is one node. */
const deepest = 500;

/** Reads a document, or throws a SyntaxError. */
export function parse(text: string): Node {
  JSON.parse(text); // checks the syntax, so that the code below need not
  let at = 0;
  const space = (): void => {
    while (" \t\r\n".includes(text[at] ?? "x")) at++;
  };
  const string = (): void => {
    for (at++; text[at] !== '"'; at++) if (text[at] === "\\") at++;
    at++;
  };
  /** Skips a value whose nesting is not of interest. */
  const skip = (): void => {
    let depth = 0;
    do {
      const c = text[at];
      if (c === '"') {
        string();
        continue;
      }
      if (c === "{" || c === "[") depth++;
      if (c === "}" || c === "]") depth--;
      at++;
    } while (depth > 0);
  };
  const value = (depth: number): Node => {
    const start = at;
    const node: Node = { kind: "literal", start, end: start, children: [] };
    const c = text[at] ?? "";
    if (c === '"') {
      node.kind = "string";
      string();
    } else if (c === "{" || c === "[") {
      if (depth === deepest) {
        node.kind = "deep";
        skip();
      } else {
        node.kind = c === "{" ? "object" : "array";
        at++;
        for (space(); text[at] !== "}" && text[at] !== "]"; space()) {
          let name: string | undefined;
          if (node.kind === "object") {
            const begin = at;
            string();
            name = JSON.parse(text.slice(begin, at)) as string;
            space();
            at++; // the colon
            space();
          }
          const child = value(depth + 1);
          if (name !== undefined) child.name = name;
          node.children.push(child);
          space();
          if (text[at] === ",") at++;
        }
        at++;
      }
    } else {
      while (/[-+.\w]/.test(text[at] ?? "")) at++;
      if (/[-\d]/.test(c)) node.kind = "number";
    }
    node.end = at;
    return node;
  };
  space();
  return value(0);
}

/** The child with a name, which is the last of those that have it. */
export function member(node: Node, name: string): Node | undefined {
  return node.children.findLast((c) => c.name === name);
}
