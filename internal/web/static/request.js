// The page of a request: reports what was shown, and opens forms in a dialog.
import { announce, refreshTimes } from "./app.js";
import { Seen } from "./seen.js";

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
  restoreIcons(el);
  refreshTimes(el);
  return true;
}

/** Puts the symbols back into the icons: browsers remove every use element from such markup. */
function restoreIcons(el) {
  for (const svg of el.querySelectorAll("svg[data-use]:empty")) {
    const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
    use.setAttribute("href", `#${svg.dataset.use}`);
    svg.append(use);
  }
}

class RequestElement extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", this);
    this.addEventListener("submit", this);
    if (this.hasAttribute("data-open")) seen = new Seen(this);
    if (this.hasAttribute("data-open") && document.visibilityState === "visible") this.report();
  }

  /** Tells the server that the request was on the screen. */
  report() {
    const body = new URLSearchParams({ shown: this.dataset.shown, rendering: this.dataset.rendering });
    fetch(`/requests/${encodeURIComponent(this.dataset.id)}/viewed`, { method: "POST", body }).catch(() => {});
  }

  handleEvent(e) {
    const opener = e.target.closest(e.type === "submit" ? "form[data-dialog]" : "a[data-dialog]");
    if (!opener || e.ctrlKey || e.metaKey || e.shiftKey || !("setHTML" in Element.prototype)) return;
    e.preventDefault();
    opener.closest("[popover]")?.hidePopover();
    this.openDialog(opener, e.submitter);
  }

  /** Opens the form of a link or button in a dialog; without one the browser shows the page. */
  async openDialog(opener, submitter) {
    if (loading) return; // a key or button was pressed twice
    loading = true;
    try {
      await loadDialog(opener, submitter, this);
    } catch {
      if (opener.href) location.href = opener.href;
      else post(opener, submitter);
    } finally {
      loading = false;
    }
  }

  /** Shows that the request has changed. The buttons wait for the review. */
  changed() {
    const bar = this.querySelector(".changed");
    if (!bar || !bar.hidden) return;
    bar.hidden = false;
    announce(bar.textContent.trim());
    for (const el of this.querySelectorAll(".decide a.btn, .decide form .btn")) {
      el.setAttribute("aria-disabled", "true");
      el.removeAttribute("data-dialog");
      el.removeAttribute("data-key");
      el.removeAttribute("href");
      if (el.form) el.disabled = true;
    }
  }
}

let loading = false; // a dialog
let seen; // what of the question was on the screen

addEventListener("submit", (e) => {
  const visible = e.target.elements.visible;
  if (visible && seen) visible.value = seen.visible();
}, { capture: true });

/** Sends a form without its listeners. */
function post(form, submitter) {
  const op = document.createElement("input");
  Object.assign(op, { type: "hidden", name: submitter.name, value: submitter.value });
  form.append(op);
  form.submit();
}

async function loadDialog(opener, submitter, request) {
  const text = await fetchForm(opener, submitter);
  const dialog = document.createElement("dialog");
  dialog.className = "actiondialog";
  if (!putHTML(dialog, text) || !dialog.querySelector("form")) throw new Error("no form");
  if (isAbout(dialog, request)) {
    showDialog(dialog);
  } else {
    request.changed();
  }
}

/** Whether a form is about what the page shows, and not about a newer revision. */
function isAbout(dialog, request) {
  const value = (name) => dialog.querySelector(`input[name=${name}]`)?.value;
  return value("shown") === request.dataset.shown && value("rendering") === request.dataset.rendering;
}

async function fetchForm(opener, submitter) {
  const headers = { Accept: "text/html" };
  let answer;
  if (opener.href) {
    const url = new URL(opener.href);
    url.searchParams.set("fragment", "1");
    answer = await fetch(url, { headers });
  } else {
    const body = new URLSearchParams(new FormData(opener, submitter));
    body.set("fragment", "1");
    answer = await fetch(opener.action, { method: "POST", headers, body });
  }
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.text();
}

function showDialog(dialog) {
  const title = dialog.querySelector("h1");
  title.id = "dialog-title";
  dialog.setAttribute("aria-labelledby", title.id);
  seen?.measure(); // nothing behind the dialog counts
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (e) => {
    if (e.target.closest("[data-close]")) { e.preventDefault(); dialog.close(); }
  });
  dialog.showModal();
  // Never a button: the key that opened the dialog, or Enter, must not press it.
  (dialog.querySelector("[autofocus]") ?? dialog.querySelector("textarea, input:not([type=hidden]), select") ?? title).focus();
}

customElements.define("fermata-request", RequestElement);
const form = document.querySelector("main form.action");
if (form) seen = new Seen(form.closest("main")); // the form has a page of its own
