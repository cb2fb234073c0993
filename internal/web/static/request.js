// The page of a request: reports what was shown, and opens forms in a dialog.
import { announce, refreshTimes } from "./app.js";

/** Keeps everything except what is unsafe: the server has escaped all text of agents. */
const keepForms = { sanitizer: { removeElements: [], removeAttributes: [] } };

/** Puts markup of this server into an element; false if the browser cannot do that safely. */
export function putHTML(el, text) {
  if (typeof el.setHTML !== "function") return false;
  try {
    el.setHTML(text, keepForms);
  } catch {
    return false;
  }
  refreshTimes(el);
  return true;
}

class RequestElement extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", this);
    if (this.hasAttribute("data-open") && document.visibilityState === "visible") this.report();
  }

  /** Tells the server that the request was on the screen. */
  report() {
    const body = new URLSearchParams({ shown: this.dataset.shown });
    fetch(`/requests/${encodeURIComponent(this.dataset.id)}/viewed`, { method: "POST", body }).catch(() => {});
  }

  handleEvent(e) {
    const link = e.target.closest("a[data-dialog]");
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey || !("setHTML" in Element.prototype)) return;
    e.preventDefault();
    link.closest("[popover]")?.hidePopover();
    openDialog(link.href);
  }

  /** Shows that the request has changed. The buttons wait for the review. */
  changed() {
    const bar = this.querySelector(".changed");
    if (!bar || !bar.hidden) return;
    bar.hidden = false;
    announce(bar.textContent.trim());
    for (const el of this.querySelectorAll(".decide a.btn")) {
      el.setAttribute("aria-disabled", "true");
      el.removeAttribute("data-dialog");
      el.removeAttribute("data-key");
      el.removeAttribute("href");
    }
  }
}

let loading = false;

/** Opens the form of a page in a dialog; without one the browser follows the link. */
async function openDialog(href) {
  if (loading) return; // a key or button was pressed twice
  loading = true;
  try {
    await loadDialog(href);
  } finally {
    loading = false;
  }
}

async function loadDialog(href) {
  const url = new URL(href);
  url.searchParams.set("fragment", "1");
  let text = "";
  try {
    const answer = await fetch(url, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.statusText);
    text = await answer.text();
  } catch {
    location.href = href;
    return;
  }
  const dialog = document.createElement("dialog");
  dialog.className = "actiondialog";
  if (!putHTML(dialog, text) || !dialog.querySelector("form")) {
    location.href = href;
    return;
  }
  const title = dialog.querySelector("h1");
  title.id = "dialog-title";
  dialog.setAttribute("aria-labelledby", title.id);
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (e) => {
    if (e.target.closest("[data-close]")) { e.preventDefault(); dialog.close(); }
  });
  dialog.showModal();
  (dialog.querySelector("textarea, input:not([type=hidden])") ?? dialog.querySelector("button"))?.focus();
}

customElements.define("fermata-request", RequestElement);
