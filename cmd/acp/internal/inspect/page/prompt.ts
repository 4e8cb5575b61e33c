// The box for prompts, with files and images.

import type { Live } from "./live";
import { get, list, text } from "./model";
import type { Json } from "./schema";
import { isObject } from "./schema";
import { add, brief, bytes, el, say, set } from "./text";

/** The largest file that is put into a prompt. */
const largest = 8_000_000;

export class Prompt {
  readonly element: HTMLElement;
  readonly input = el("textarea", {
    rows: 2, "aria-label": "Prompt", placeholder: "Prompt (Enter sends, Shift+Enter begins a line)", onkeydown: (event: KeyboardEvent) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      void this.send();
    },
    onpaste: (event: ClipboardEvent) => void this.attach(event.clipboardData?.files),
    ondrop: (event: DragEvent) => {
      if (event.dataTransfer?.files.length) event.preventDefault();
      void this.attach(event.dataTransfer?.files);
    },
  });
  private readonly attached = el("ul", { class: "attached", "aria-label": "Files in the prompt" });
  private readonly choice = el("input", { type: "file", multiple: true, hidden: true, onchange: () => {
    void this.attach(this.choice.files);
    this.choice.value = "";
  } });
  private readonly sessions = el("select", { "aria-label": "Session of the prompt", onchange: () => {
    this.live.session = this.sessions.value;
    this.changed();
  } });
  private readonly modes = el("select", { "aria-label": "Mode", onchange: () => {
    void this.live.send("session/set_mode", { sessionId: this.live.session, modeId: this.modes.value });
  } });
  private readonly options = el("span", { class: "options" });
  private readonly stop = el("button", { type: "button", title: "session/cancel (x)", onclick: () => void this.live.cancel() }, "Cancel");
  private readonly sender = el("button", { type: "button", class: "primary", onclick: () => void this.send() }, "Send");
  private readonly status = el("span", { class: "state" });
  private blocks: Json[] = [];
  private busy = false;
  private drawn = "";

  constructor(private readonly live: Live, private readonly changed: () => void) {
    this.element = el("section", { class: "prompt", "aria-label": "Prompt" },
      el("div", { class: "settings" }, this.status, this.sessions, this.modes, this.options),
      this.attached, this.input,
      el("div", { class: "actions" }, this.sender, this.stop,
        el("button", { type: "button", onclick: () => this.choice.click() }, "Add files"), this.choice,
        el("button", { type: "button", title: "session/new", onclick: () => void this.open() }, "New session")));
  }

  update(): void {
    const { live } = this;
    const source = live.running;
    this.element.hidden = !live.possible;
    if (!live.sessions.includes(live.session)) live.session = live.sessions.at(-1) ?? "";
    this.stop.disabled = !live.busy;
    this.sender.disabled = this.busy;
    set(this.status, !source ? "Not started" : live.session ? (this.stop.disabled ? "Ready" : "Working…") : "No session");
    const modes = live.modes();
    const options = live.options();
    const key = JSON.stringify([source?.id, live.sessions, live.session, modes, options]);
    if (key === this.drawn) return;
    this.drawn = key;
    fill(this.sessions, live.sessions.map((s) => [s, s]), live.session);
    fill(this.modes, (modes?.all ?? []).map((m) => [text(m, "id"), text(m, "name")]), modes?.current ?? "");
    set(this.options, ...options.slice(0, 20).map((o) => this.option(o)));
  }

  private option(option: Json): HTMLElement | undefined {
    const id = text(option, "id") || text(option, "configId");
    const name = brief(text(option, "name") || id, 40);
    const send = (value: Json): void => void this.live.send("session/set_config_option", {
      sessionId: this.live.session, configId: id, ...(typeof value === "boolean" ? { type: "boolean", value } : { value }),
    });
    const current = get(option, "currentValue");
    if (typeof current === "boolean") {
      const box = el("input", { type: "checkbox", checked: current, onchange: () => send(box.checked) });
      return el("label", { class: "check" }, box, name);
    }
    const values = list(option, "options").flatMap((o) => get(o, "options") ? list(o, "options") : [o]);
    const select = el("select", { "aria-label": name, title: name, onchange: () => send(select.value) });
    fill(select, values.map((v) => [text(v, "value"), text(v, "name")]), typeof current === "string" ? current : "");
    return select;
  }

  private async open(): Promise<void> {
    await this.working(async () => {
      await this.live.open();
    });
  }

  private async working(work: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.update();
    try {
      await work();
    } finally {
      this.busy = false;
      this.changed();
    }
  }

  private async send(): Promise<void> {
    const words = this.input.value;
    if (!words && this.blocks.length === 0) return this.input.focus();
    await this.working(async () => {
      if (!this.live.session && !(await this.live.open())) return;
      const prompt: Json[] = words ? [{ type: "text", text: words }, ...this.blocks] : this.blocks;
      const reply = await this.live.send("session/prompt", { sessionId: this.live.session, prompt });
      if (reply.error) return;
      this.input.value = "";
      this.blocks = [];
      set(this.attached);
    });
  }

  private async attach(files: FileList | null | undefined): Promise<void> {
    for (const file of [...(files ?? [])]) { // a copy: the control's list is emptied meanwhile
      if (file.size > largest) {
        say(`${file.name} is too large: ${bytes(file.size)} of ${bytes(largest)}.`);
        continue;
      }
      const block = await blockOf(file);
      this.blocks.push(block);
      const entry = el("li", {}, `${brief(file.name, 60)} · ${text(block, "type")} · ${bytes(file.size)} `);
      const need = text(block, "type") === "resource" ? "embeddedContext" : text(block, "type");
      const init = this.live.answer(this.live.running, "initialize");
      if (isObject(init) && get(init, "agentCapabilities", "promptCapabilities", need) !== true && this.live.version === 1) {
        add(entry, el("strong", {}, `the agent does not claim ${need} `));
      }
      add(entry, el("button", { type: "button", "aria-label": `Remove ${brief(file.name, 60)}`, onclick: () => {
        this.blocks = this.blocks.filter((b) => b !== block);
        entry.remove();
      } }, "Remove"));
      this.attached.append(entry);
    }
  }
}

function fill(select: HTMLSelectElement, options: string[][], value: string): void {
  set(select, ...options.map(([id = "", label]) => {
    const option = el("option", {}, brief(label || id, 60));
    option.value = id;
    return option;
  }));
  select.value = value;
  select.hidden = options.length === 0;
}

/** A file as a block of content: an image, a sound, or a resource with text or bytes. */
async function blockOf(file: File): Promise<Json> {
  const data = new Uint8Array(await file.arrayBuffer());
  const uri = "file:///" + encodeURIComponent(file.name);
  if (file.type.startsWith("image/")) return { type: "image", data: base64(data), mimeType: file.type, uri };
  if (file.type.startsWith("audio/")) return { type: "audio", data: base64(data), mimeType: file.type };
  try {
    const words = new TextDecoder("utf-8", { fatal: true }).decode(data);
    return { type: "resource", resource: { uri, text: words, mimeType: file.type || "text/plain" } };
  } catch {
    return { type: "resource", resource: { uri, blob: base64(data), mimeType: file.type || "application/octet-stream" } };
  }
}

function base64(data: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < data.length; at += 0x8000) binary += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(binary);
}
