// The chat page: new lines appear without a reload, and messages are sent without leaving the page.
import { announce, refreshTimes } from "./app.js";
import { putHTML } from "./request.js";

class ChatElement extends HTMLElement {
  connectedCallback() {
    const box = this.querySelector(".composer textarea");
    box?.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || e.shiftKey || e.ctrlKey || e.metaKey || e.isComposing) return;
      e.preventDefault();
      e.target.form.requestSubmit();
    });
    this.thread = this.querySelector("[data-thread]");
    if (!this.thread || typeof this.thread.setHTML !== "function") return;
    this.classList.add("live");
    this.addEventListener("submit", this);
    this.scroll();
    this.connect();
    addEventListener("pagehide", () => this.source?.close());
  }

  connect() {
    this.source = new EventSource(`/api/v1/conversations/${encodeURIComponent(this.dataset.id)}/events`);
    this.source.addEventListener("state", () => this.refreshSoon());
    // The browser reconnects after a lost connection, but not after an error of the server.
    this.source.addEventListener("error", () => { if (this.source.readyState === EventSource.CLOSED) setTimeout(() => this.connect(), 5000); });
  }

  /** Several changes at once need one update. */
  refreshSoon() {
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this.refresh().catch(() => {}), 30);
  }

  async refresh() {
    const answer = await fetch(`/chat/${encodeURIComponent(this.dataset.id)}?fragment=1`, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const box = document.createElement("div");
    if (putHTML(box, await answer.text())) this.show(box);
  }

  /** Adds new lines in their place, and replaces the open questions if they have changed. */
  show(box) {
    const log = this.thread.querySelector(".log");
    let added = false;
    for (const line of box.querySelectorAll(".bubble")) {
      const n = Number(line.dataset.n);
      if (log.querySelector(`[data-n="${n}"]`)) continue;
      log.insertBefore(line, [...log.children].find((other) => Number(other.dataset.n) > n) ?? null);
      added = true;
    }
    const from = box.querySelector(".cards"), to = this.thread.querySelector(".cards");
    const asked = from.dataset.key !== to.dataset.key;
    if (asked || !to.querySelector("form")) {
      const had = to.contains(document.activeElement);
      to.replaceChildren(...from.childNodes);
      to.dataset.key = from.dataset.key;
      if (had) (to.querySelector("button, input, select, textarea") ?? this.querySelector("#message"))?.focus();
      if (asked && from.dataset.key) announce([...to.querySelectorAll("p.block, legend")].map((el) => el.textContent).join(" "));
    } else {
      to.querySelector(".working")?.remove();
      const working = from.querySelector(".working");
      if (working) to.append(working);
    }
    refreshTimes(this.thread);
    if (added || asked) this.scroll();
  }

  scroll() { this.querySelector(".composer")?.scrollIntoView({ block: "end" }); }

  handleEvent(e) {
    const form = e.target;
    e.preventDefault();
    if (this.sending) return; // a button was pressed twice
    this.send(form, e.submitter);
  }

  async send(form, button) {
    this.sending = true;
    try {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form, button)), headers: { Accept: "text/html" } });
      if (!answer.ok) { // the server explains what is wrong
        this.native(form, button);
        return;
      }
      form.querySelector("[name=idempotency_key]").value = crypto.randomUUID();
      if (form.classList.contains("composer")) form.reset();
      await this.refresh();
    } catch {
      announce(this.dataset.textLost);
      this.notice(this.dataset.textLost);
    } finally {
      this.sending = false;
    }
  }

  /** Sends the form as without scripts. The same key makes it count once. */
  native(form, button) {
    if (button?.name) {
      const field = Object.assign(document.createElement("input"), { type: "hidden", name: button.name, value: button.value });
      form.append(field);
    }
    form.submit();
  }

  notice(text) {
    let el = this.querySelector(".talk > .notice.bad");
    if (!el) {
      el = Object.assign(document.createElement("div"), { className: "notice bad" });
      this.querySelector(".composer").before(el);
    }
    el.textContent = text;
  }
}

customElements.define("fermata-chat", ChatElement);
