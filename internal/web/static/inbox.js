// The list of the inbox: keys to move in it.
import { isTyping } from "./app.js";

class InboxElement extends HTMLElement {
  connectedCallback() {
    document.addEventListener("keydown", this);
    this.querySelector(".row.selected")?.scrollIntoView({ block: "nearest" });
  }

  disconnectedCallback() { document.removeEventListener("keydown", this); }

  handleEvent(e) {
    if (isTyping(e) || document.querySelector("dialog[open]")) return;
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[e.key];
    if (!step || (e.key.startsWith("Arrow") && !e.target.closest?.(".rows"))) return;
    const links = [...this.querySelectorAll(".row a")];
    const at = links.findIndex((a) => a === document.activeElement);
    const from = at >= 0 ? at : links.findIndex((a) => a.getAttribute("aria-current"));
    const next = links[Math.min(Math.max(from + step, 0), links.length - 1)];
    if (!next) return;
    e.preventDefault();
    next.focus();
  }
}

customElements.define("fermata-inbox", InboxElement);
