// The list of keys.

import { el } from "./text";

const keys: [string, string][] = [
  ["?", "this list"],
  ["1 … 7", "open a view: Timeline (on a narrow screen), Message, Conversation, Findings, Capabilities, Statistics, Send"],
  ["/", "search in the timeline"],
  ["j k ↓ ↑", "next and previous message; also Page Up, Page Down, Home and End in the timeline"],
  ["Enter", "open the message, or the folded chunks, that are selected"],
  ["n N", "next and previous finding"],
  ["r", "from a request to its response, and back"],
  ["f", "fold chunks or not"],
  ["c", "compare two sources"],
  ["← →", "close and open a part of the message; also from tab to tab"],
  ["Enter", "in a message: the whole description of a member"],
  ["Esc", "back to the timeline"],
  ["p", "write a prompt: Enter sends it, Shift+Enter begins a new line"],
  ["x", "cancel the turn"],
  ["e", "edit the selected message and send it"],
  ["t", "light or dark"],
];

export class Help {
  private readonly box = el("input", { type: "checkbox", checked: true });
  readonly element = el("dialog", { class: "help-dialog", "aria-label": "Keys" },
    el("h2", {}, "Keys"),
    el("dl", {}, ...keys.flatMap(([key, words]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)])),
    el("label", { class: "check" }, this.box, "Keys of one letter are on"),
    el("form", { method: "dialog" }, el("button", { class: "primary", autofocus: true, onclick: (event: Event) => {
      event.preventDefault();
      this.element.close();
    } }, "Close")));

  get keysOn(): boolean {
    return this.box.checked;
  }

  show(): void {
    this.element.showModal();
  }
}
