// Live updates: one event stream of the requests that the person may see. Events carry ids; the
// content comes from the server as the same fragments as in the page.
import { announce, refreshCount } from "./app.js";
import { putHTML } from "./request.js";

const closing = new Set(["decided", "expired", "withdrawn"]);
const changes = ["opened", "changed", "voted", "decided", "claimed", "released", "expired", "withdrawn"];

/** Fetches a fragment into an element outside of the page; null if that is not possible. */
async function fetchFragment(path) {
  const answer = await fetch(path, { headers: { Accept: "text/html" } });
  if (!answer.ok) return null;
  const box = document.createElement("div");
  return putHTML(box, await answer.text()) ? box : null;
}

/** Updates the open request without moving what is being read. */
async function updateRequest(el) {
  const box = await fetchFragment(`/requests/${encodeURIComponent(el.dataset.id)}?fragment=1`);
  const now = box?.querySelector("fermata-request");
  if (!now) return;
  if (now.dataset.shown !== el.dataset.shown || now.hasAttribute("data-open") !== el.hasAttribute("data-open")) {
    el.changed();
    return;
  }
  el.dataset.revision = now.dataset.revision;
  const from = now.querySelector(".livepart"), to = el.querySelector(".livepart");
  if (from && to && !to.contains(document.activeElement)) to.replaceChildren(...from.childNodes);
}

/** Updates a row in its place, or adds a new one at the end: rows never move. */
async function updateRow(list, id, type) {
  const old = list.querySelector(`.row[data-id="${CSS.escape(id)}"]`);
  if (!old && type !== "opened") return;
  const box = await fetchFragment(`/inbox/rows/${encodeURIComponent(id)}${list.dataset.query ?? ""}`);
  const row = box?.querySelector(".row");
  if (!row) return;
  if (old) {
    if (old.contains(document.activeElement)) return;
    row.classList.toggle("selected", old.classList.contains("selected"));
    old.replaceWith(row);
    return;
  }
  if (list.querySelector(`.row[data-id="${CSS.escape(id)}"]`)) return;
  row.classList.add("fresh-row");
  list.append(row);
  document.querySelector(".list .empty")?.remove();
  announce(row.textContent.replace(/\s+/g, " ").trim());
}

function showViewers(place, event) {
  const others = (event.viewers ?? []).map((v) => v.by).filter((name) => name !== place?.dataset.me);
  if (!place) return;
  place.textContent = others.length ? place.dataset.viewing.replace("%s", others.join(", ")) : "";
  if (place.classList.contains("viewing")) place.hidden = !others.length; // of a row
}

function start() {
  const list = document.querySelector(".rows[data-live]");
  const open = () => document.querySelector("fermata-request");
  let source;
  const pending = new Map();
  const handle = (e) => {
    const event = JSON.parse(e.data);
    if (event.type === "viewing") {
      if (open()?.dataset.id === event.request) showViewers(open().querySelector("[data-viewers]"), event);
      showViewers(list?.querySelector(`.row[data-id="${CSS.escape(event.request)}"] .viewing`), event);
      return;
    }
    // several changes at once need one update
    clearTimeout(pending.get(event.request));
    const type = pending.has(event.request) && !closing.has(event.type) ? "opened" : event.type;
    pending.set(event.request, setTimeout(() => {
      pending.delete(event.request);
      refreshCount();
      if (open()?.dataset.id === event.request) updateRequest(open()).catch(() => {});
      if (list) updateRow(list, event.request, type).catch(() => {});
    }, 100));
  };
  const connect = () => {
    source = new EventSource("/api/v1/requests/events");
    for (const type of [...changes, "viewing"]) source.addEventListener(type, handle);
    // too long ago: the rows may be incomplete
    source.addEventListener("reset", () => { const link = document.querySelector("a.fresh"); if (link) link.hidden = false; });
    // the request and the count may have changed before the connection was there
    source.addEventListener("open", () => {
      refreshCount();
      if (open()?.hasAttribute("data-open")) updateRequest(open()).catch(() => {});
    });
    // The browser reconnects after a lost connection, but not after an error of the server.
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5000); });
  };
  connect();
  addEventListener("pagehide", () => source.close());
  const viewing = () => {
    const el = open();
    if (el?.hasAttribute("data-open") && document.visibilityState === "visible") {
      fetch(`/api/v1/requests/${encodeURIComponent(el.dataset.id)}/viewing`, { method: "POST" }).catch(() => {});
    }
  };
  viewing();
  setInterval(viewing, 20000);
}

if ("setHTML" in Element.prototype && (document.querySelector("fermata-request") || document.querySelector(".rows"))) start();
