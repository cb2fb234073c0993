// The chat page: new lines appear without a reload, and messages are sent without leaving the page.
import { announce, refreshTimes } from "./app.js";
import { putHTML } from "./request.js";

/** A new idempotency key. */
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

/** Sends a form, and again if the connection was lost: the same key makes it count once. */
async function post(url, body) {
  for (let left = 3; ; left--) {
    try {
      return await fetch(url, { method: "POST", body, headers: { Accept: "text/html" } });
    } catch (err) {
      if (left === 0) throw err;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

/** Sends a form as without scripts. The same key makes it count once. */
function submit(action, body) {
  const form = Object.assign(document.createElement("form"), { method: "post", action, hidden: true });
  for (const [name, value] of body) form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
  document.body.append(form);
  form.submit();
}

const textFields = (box) => [...box.querySelectorAll("form [name^='v/']")];

/** What was typed into the forms that were not sent, by name of the field. */
const typedIn = (box) => new Map(textFields(box).filter((el) => !el.form.inert && el.value !== el.defaultValue).map((el) => [el.name, el.value]));

class ChatElement extends HTMLElement {
  connectedCallback() {
    const box = this.querySelector(".composer textarea");
    box?.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || e.shiftKey || e.ctrlKey || e.metaKey || e.isComposing) return;
      e.preventDefault();
      e.target.form.requestSubmit();
    });
    if (typeof this.setHTML !== "function") return;
    this.thread = this.querySelector("[data-thread]");
    this.addEventListener("submit", this);
    if (!this.thread) return;
    this.classList.add("live");
    this.scroll();
    this.connect();
    addEventListener("pagehide", () => this.source?.close());
  }

  connect() {
    this.source = new EventSource(`/api/v1/conversations/${encodeURIComponent(this.dataset.id)}/events`);
    this.source.addEventListener("open", () => this.sendFirst());
    this.source.addEventListener("state", () => this.refreshSoon());
    this.source.addEventListener("token", (e) => this.write(JSON.parse(e.data)));
    // The browser reconnects after a lost connection, but not after an error of the server.
    this.source.addEventListener("error", () => { if (this.source.readyState === EventSource.CLOSED) setTimeout(() => this.connect(), 5000); });
  }

  /** Adds a part of what the assistant is writing. The line with the whole text replaces it. */
  write({ run, text }) {
    const log = this.thread.querySelector(".log"), of = `[data-run="${CSS.escape(run)}"]`;
    if (log.querySelector(`.bubble${of}:not(.draft)`)) return;
    let draft = log.querySelector(`.draft${of}`);
    if (!draft) {
      draft = Object.assign(document.createElement("li"), { className: "bubble agent draft", ariaHidden: "true" });
      draft.dataset.run = run;
      draft.append(Object.assign(document.createElement("p"), { className: "block" }));
      log.append(draft);
    }
    draft.firstChild.append(text.replace(/[^\P{C}\n]/gu, "\uFFFD"));
    this.scroll();
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

  /** Adds new lines in their place, and replaces what has changed: corrected answers, and the open questions. */
  show(box) {
    const log = this.thread.querySelector(".log");
    let added = false;
    for (const line of box.querySelectorAll(".bubble")) {
      const n = Number(line.dataset.n);
      const old = log.querySelector(`[data-n="${n}"]`);
      if (old?.dataset.key !== line.dataset.key) old?.replaceWith(line); // an answer was corrected
      if (old) continue;
      log.insertBefore(line, [...log.children].find((other) => Number(other.dataset.n) > n) ?? log.querySelector(".draft"));
      added = true;
    }
    for (const draft of log.querySelectorAll(".draft")) {
      const written = log.querySelector(`.bubble[data-run="${CSS.escape(draft.dataset.run)}"]:not(.draft)`);
      if (written || !box.querySelector(".working")) draft.remove();
    }
    const from = box.querySelector(".cards"), to = this.thread.querySelector(".cards");
    const asked = from.dataset.key !== to.dataset.key;
    if (asked || !to.querySelector("form")) {
      const had = to.contains(document.activeElement), typed = typedIn(to);
      to.replaceChildren(...from.childNodes);
      to.dataset.key = from.dataset.key;
      for (const el of textFields(to)) if (typed.has(el.name)) el.value = typed.get(el.name);
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

  /** Shows the end: in the pane, or on a phone on the page. */
  scroll() {
    const pane = this.querySelector(".talk");
    pane.scrollTop = pane.scrollHeight;
    scrollTo(0, document.documentElement.scrollHeight);
  }

  /** Sends a form. Messages are sent one after the other; the field is free for the next one. */
  handleEvent(e) {
    const form = e.target, body = new URLSearchParams(new FormData(form, e.submitter));
    e.preventDefault();
    if (!this.thread) {
      this.begin(form, body);
      return;
    }
    if (form.classList.contains("composer")) {
      form.reset();
      form.querySelector("[name=idempotency_key]").value = newKey();
    } else if (form.inert) {
      return; // a button was pressed twice
    } else {
      form.inert = true;
    }
    this.sent = (this.sent ?? Promise.resolve()).then(() => this.send(form, body));
  }

  /** Creates a conversation. Its page sends the first message, so that it can show how the answer is written. */
  async begin(form, body) {
    const key = body.get("idempotency_key"), live = new URLSearchParams(body);
    live.delete("text");
    live.set("live", "1");
    try {
      const answer = await fetch(form.action, { method: "POST", body: live, redirect: "manual" });
      if (answer.type !== "opaqueredirect") throw new Error(answer.statusText);
      sessionStorage.setItem("fermata.chat", JSON.stringify({ key, text: body.get("text") }));
      location.assign(`/chat/chat-${encodeURIComponent(key)}`);
    } catch {
      submit(form.action, body);
    }
  }

  /** Sends the first message of a conversation. It counts once, also if the page is loaded again. */
  async sendFirst() {
    const first = JSON.parse(sessionStorage.getItem("fermata.chat") ?? "{}"), form = this.querySelector(".composer");
    if (!form || this.dataset.id !== `chat-${first.key}`) return;
    const title = this.querySelector(".chats [aria-current] .title");
    if (title) title.textContent = first.text.slice(0, 80);
    await this.send(form, new URLSearchParams({ idempotency_key: first.key, text: first.text }));
    sessionStorage.removeItem("fermata.chat");
  }

  async send(form, body) {
    try {
      const answer = await post(form.action, body);
      if (!answer.ok) { // the server explains what is wrong
        submit(form.action, body);
        return;
      }
      this.querySelector(".talk > .notice.bad")?.remove();
      // A form that stays is a new message the next time. That of the message field is new already.
      if (!form.classList.contains("composer")) form.querySelector("[name=idempotency_key]").value = newKey();
      await this.refresh();
    } catch {
      const box = this.querySelector("#message");
      if (box && !box.value) box.value = body.get("text") ?? "";
      announce(this.dataset.textLost);
      this.notice(this.dataset.textLost);
    } finally {
      form.inert = false;
    }
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
