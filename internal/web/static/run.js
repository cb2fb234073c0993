// The page of a run: what happened and what happens, from the event stream of the run. The content
// comes from the server as the same fragment as in the page.
import { refreshTimes } from "./app.js";
import { putHTML } from "./request.js";

const stored = ["created", "asked", "decided", "expired", "withdrawn", "effect_begun", "effect_ended", "waiting", "parked", "completed", "failed", "cancelled", "superseded"];
const final = new Set(["completed", "failed", "cancelled", "superseded"]);
const maxShown = 200;

/** The time of today, or with the date before. */
function clockTime(at) {
  const part = (options) => at.toLocaleString(document.documentElement.lang, options);
  const time = part({ timeStyle: "medium", hour12: false });
  return at.toDateString() === new Date().toDateString() ? time : `${part({ day: "numeric" })} ${part({ month: "short" })} ${time}`;
}

class RunElement extends HTMLElement {
  connectedCallback() {
    this.live = this.querySelector("[data-live]");
    this.path = `/runs/${encodeURIComponent(this.dataset.key)}`;
    if (!this.live || !("setHTML" in Element.prototype)) return;
    this.connect();
    addEventListener("pagehide", () => this.source?.close());
  }

  connect() {
    this.live.querySelector("[data-events]").replaceChildren(); // a new stream repeats all events
    this.source = new EventSource(`/api/v1${this.path}/events`);
    for (const type of stored) this.source.addEventListener(type, (e) => this.stored(type, JSON.parse(e.data)));
    this.source.addEventListener("step", (e) => this.step(JSON.parse(e.data)));
    // The stream ends with a run that has ended; the browser would connect again.
    this.source.addEventListener("outcome", () => { if (this.ended) this.source.close(); });
    this.source.addEventListener("error", () => {
      if (this.ended) this.source.close();
      else if (this.source.readyState === EventSource.CLOSED) setTimeout(() => this.connect(), 5000);
    });
  }

  stored(type, event) {
    this.ended = final.has(type);
    const item = this.add(type, event.createdAt);
    if (event.request) {
      const link = document.createElement("a");
      link.href = `/requests/${encodeURIComponent(event.request)}`;
      link.textContent = item.firstChild.textContent;
      item.firstChild.replaceChildren(link);
    }
    clearTimeout(this.pending); // several changes at once need one update
    this.pending = setTimeout(() => this.update().catch(() => {}), 100);
  }

  step(step) {
    const item = this.add(`step_${step.state}`, new Date().toISOString());
    const node = document.createElement("span");
    node.className = "mono";
    node.textContent = `${step.address.replace(/^node:/, "")} `;
    item.firstChild.prepend(node);
  }

  /** Adds a line to the list: the words of the server, and the time. */
  add(type, at) {
    const item = document.createElement("li");
    const words = document.createElement("span");
    const time = document.createElement("time");
    words.textContent = this.live.querySelector(`[data-event="${CSS.escape(type)}"]`)?.textContent ?? type;
    time.dateTime = at;
    time.textContent = clockTime(new Date(at));
    item.className = { completed: "ok", effect_ended: "ok", failed: "no", expired: "no", waiting: "wait", asked: "wait" }[type] ?? "";
    item.append(words, time);
    const list = this.live.querySelector("[data-events]");
    list.append(item);
    while (list.children.length > maxShown) list.firstElementChild.remove();
    this.live.hidden = false;
    return item;
  }

  /** Replaces the parts that the server would now render differently; not the one with the focus. */
  async update() {
    const answer = await fetch(`${this.path}?fragment=1`, { headers: { Accept: "text/html" } });
    const box = document.createElement("div");
    if (!answer.ok || !putHTML(box, await answer.text())) return;
    for (const part of this.querySelectorAll("[data-part]")) {
      const now = box.querySelector(`[data-part="${part.dataset.part}"]`);
      if (!now || now.textContent === part.textContent) continue;
      if (part.contains(document.activeElement)) {
        part.addEventListener("focusout", () => this.update().catch(() => {}), { once: true });
        continue;
      }
      const open = [...part.querySelectorAll("details")].map((d) => d.open);
      part.replaceChildren(...now.childNodes);
      part.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? false; });
    }
    refreshTimes(this);
  }
}

customElements.define("fermata-run", RunElement);
