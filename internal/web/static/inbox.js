// The list of the inbox: keys to move in it. The request on the right is that of the focused row.
import { isTyping } from "./app.js";
import { putHTML } from "./request.js";

class InboxElement extends HTMLElement {
  /** The request that is being loaded: the link of its row, and whether it was shown in the end. */
  loading = null;

  connectedCallback() {
    document.addEventListener("keydown", this, true); // before the keys of the page
    this.querySelector(".row.selected")?.scrollIntoView({ block: "nearest" });
  }

  disconnectedCallback() { document.removeEventListener("keydown", this, true); }

  handleEvent(e) {
    if (isTyping(e) || document.querySelector("dialog[open]")) return;
    const row = document.activeElement?.closest?.(".row");
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[e.key];
    if (step && !(e.key.startsWith("Arrow") && !row)) {
      this.move(e, step);
    } else if (row && /^[a-z]$/.test(e.key) && row.dataset.id !== this.shown) {
      e.preventDefault();
      e.stopImmediatePropagation();
      if (!e.repeat) this.press(row, e.key);
    }
  }

  /** The id of the request on the right. */
  get shown() { return this.querySelector("fermata-request")?.dataset.id; }

  /** Moves the focus by one row, and shows its request. */
  move(e, step) {
    const links = [...this.querySelectorAll(".row a")];
    const at = links.findIndex((a) => a === document.activeElement);
    const from = at >= 0 ? at : links.findIndex((a) => a.getAttribute("aria-current"));
    const next = links[Math.min(Math.max(from + step, 0), links.length - 1)];
    if (!next) return;
    e.preventDefault();
    next.focus();
    this.show(next);
  }

  /** Shows the request of a row; true if it is there. */
  show(link) {
    if (this.loading?.link !== link) {
      this.loading = { link };
      this.loading.done = this.load(this.loading);
    }
    return this.loading.done;
  }

  async load(loading) {
    const link = loading.link;
    const url = new URL(link.href);
    url.searchParams.set("fragment", "1");
    const box = document.createElement("div");
    try {
      const answer = await fetch(url, { headers: { Accept: "text/html" } });
      if (!answer.ok || !putHTML(box, await answer.text())) throw new Error(answer.statusText);
      const module = box.querySelector("fermata-request")?.dataset.module;
      if (module) await import(module);
    } catch {
      location.href = link.href;
      return false;
    }
    if (this.loading !== loading) return false; // another one was chosen
    this.loading = null;
    if (document.activeElement !== link) return false; // the focus has moved on
    this.querySelector(".detail").replaceChildren(...box.childNodes);
    this.querySelector(".detail").scrollTop = 0;
    for (const a of this.querySelectorAll(".row a")) {
      a.closest(".row").classList.toggle("selected", a === link);
      if (a === link) a.setAttribute("aria-current", "true");
      else a.removeAttribute("aria-current");
    }
    history.replaceState(null, "", link.href);
    return true;
  }

  /** Presses a key of the request of a row, as soon as that request is shown. */
  async press(row, key) {
    if (!await this.show(row.querySelector("a")) || this.shown !== row.dataset.id) return;
    this.querySelector(`.detail [data-key="${CSS.escape(key)}"]`)?.click();
  }
}

customElements.define("fermata-inbox", InboxElement);
