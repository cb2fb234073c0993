// The script of all pages. Pages work without it.
// No innerHTML here: the content security policy forbids it (Trusted Types).

/** Stores the time zone for the server, which writes exact times. */
function storeZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.includes(`fermata_zone=${encodeURIComponent(zone)}`)) {
    document.cookie = `fermata_zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  }
}

/** The shortest span in one unit, as the server writes it: 14 min. */
function span(seconds) {
  const [second, minute, hour, day] = units;
  if (seconds < 60) return [Math.max(1, Math.floor(seconds)), second];
  if (seconds < 3600) return [Math.floor(seconds / 60), minute];
  if (seconds < 48 * 3600) return [Math.floor(seconds / 3600), hour];
  return [Math.floor(seconds / 86400), day];
}

const units = document.documentElement.dataset.units.split(" ");
const inUnits = new RegExp(`\\d+ (${units.map((unit) => unit.replaceAll(".", "\\.")).join("|")})(?!\\p{L})`, "u");

/** Keeps relative times current. The server wrote the first text; only the number changes. */
export function refreshTimes(root = document) {
  for (const el of root.querySelectorAll("time[data-rel]")) {
    const away = (Date.parse(el.dateTime) - Date.now()) / 1000;
    if ((el.dataset.rel === "ago") !== away < 0) continue; // it has passed: the server knows the words
    const [n, unit] = span(Math.abs(away));
    const text = el.textContent.replace(inUnits, `${n} ${unit}`);
    if (text !== el.textContent) el.textContent = text;
  }
}

/** Puts a message where screen readers announce it. */
export function announce(text) {
  const live = document.getElementById("live");
  if (live) live.textContent = text;
}

/** Opens dialogs in browsers without invoker commands. */
function upgradeCommands() {
  if ("commandForElement" in HTMLButtonElement.prototype) return;
  document.addEventListener("click", (e) => {
    const button = e.target.closest?.("button[commandfor]");
    const dialog = button && document.getElementById(button.getAttribute("commandfor"));
    if (!dialog) return;
    if (button.getAttribute("command") === "show-modal") dialog.showModal();
    if (button.getAttribute("command") === "close") dialog.close();
  });
}

/** Whether a key belongs to a field that is being typed in, or to the browser. */
export function isTyping(e) {
  return e.ctrlKey || e.metaKey || e.altKey || e.isComposing ||
    e.target.closest?.("input:not([type=checkbox],[type=radio]), textarea, select, [contenteditable]") !== null;
}

let pendingG = 0;

function keys(e) {
  if (e.repeat) return; // a key that is held confirms once
  if ((e.ctrlKey || e.metaKey) && e.key === "Enter") {
    const form = e.target.closest?.("form") ?? document.querySelector("dialog[open] form[method=post]") ?? document.querySelector("form.action");
    if (form) { e.preventDefault(); form.requestSubmit(); }
    return;
  }
  if (isTyping(e) || document.querySelector("dialog[open]")) return;
  if (e.key === "?") { e.preventDefault(); document.getElementById("keys")?.showModal(); return; }
  if (e.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) { e.preventDefault(); search.focus(); search.select(); }
    return;
  }
  if (e.key === "g") { pendingG = Date.now(); return; }
  if (e.key === "i" && Date.now() - pendingG < 1000) { location.href = "/inbox"; return; }
  const target = document.querySelector(`[data-key="${CSS.escape(e.key)}"]`);
  if (target) { e.preventDefault(); target.click(); }
}

/** Sends a form once: it cannot be sent again until the browser shows this page again. */
function sendOnce(e) {
  if (e.defaultPrevented || e.target.method !== "post") return;
  if (e.target.dataset.sent) e.preventDefault();
  else e.target.dataset.sent = "1";
}

function allowSending() {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
}

let counting = false; // a count is asked for
let countAgain = false; // something has changed since

/** Shows how many requests wait for this person: in the navigation and on the installed icon. */
export function refreshCount(wait = 300) {
  const place = document.getElementById("nav-inbox");
  if (!place) return;
  if (counting) {
    countAgain = true;
    return;
  }
  counting = true;
  setTimeout(async () => { // several changes at once need one count
    countAgain = false;
    try {
      const answer = await fetch("/inbox/count", { headers: { Accept: "application/json" } });
      if (answer.ok) showCount(place, await answer.json());
    } catch {
      // the next change asks again
    } finally {
      counting = false;
      if (countAgain) refreshCount();
    }
  }, wait);
}

function showCount(place, { count, text }) {
  place.textContent = text;
  if (count > 0) navigator.setAppBadge?.(count).catch(() => {});
  else navigator.clearAppBadge?.().catch(() => {});
}

/** Removes messages about what was done after a while. */
function fadeToasts() {
  for (const el of document.querySelectorAll(".toast")) setTimeout(() => el.remove(), 6000);
}

/** Lets buttons copy a text, where the browser allows it. */
function offerCopies() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      await navigator.clipboard.writeText(source.textContent.trim()).catch(() => getSelection()?.selectAllChildren(source));
    });
  }
}

storeZone();
offerCopies();
upgradeCommands();
fadeToasts();
refreshTimes();
setInterval(refreshTimes, 15000);
refreshCount(0);
setInterval(() => { if (document.visibilityState === "visible") refreshCount(); }, 60000);
document.addEventListener("keydown", keys);
document.addEventListener("submit", sendOnce);
addEventListener("pageshow", allowSending);
