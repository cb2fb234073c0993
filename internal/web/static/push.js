// Turns notifications of this browser on and off. The list of browsers works without scripts.
const form = document.querySelector("form[data-push]");
const toggle = form?.querySelector("[role=switch]");

const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** Shows one of the messages, or none. */
function say(state) {
  for (const el of form.querySelectorAll("[data-when]")) el.hidden = el.dataset.when !== state;
}

/** Why this browser cannot be notified; "" if it can. */
function problem() {
  if (!window.isSecureContext) return "insecure";
  if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window)) return "unsupported";
  return Notification.permission === "denied" ? "blocked" : "";
}

/** The content security policy allows one script for workers: that of this page. */
function workerURL() {
  const path = form.dataset.worker;
  const rules = { createScriptURL: (url) => { if (url !== path) throw new TypeError(url); return url; } };
  return window.trustedTypes ? trustedTypes.createPolicy("fermata-worker", rules).createScriptURL(path) : path;
}

async function current() {
  const registration = await navigator.serviceWorker.getRegistration("/");
  return registration?.pushManager.getSubscription() ?? null;
}

/** Returns the entry of a subscription in the list. */
async function entryOf(subscription) {
  const print = text(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subscription.endpoint)));
  return document.querySelector(`[data-fingerprint="${CSS.escape(print)}"]`);
}

async function turnOn() {
  const allowed = Notification.permission === "granted" ? "granted" : await Notification.requestPermission();
  if (allowed !== "granted") {
    toggle.checked = false;
    say(problem());
    return;
  }
  await navigator.serviceWorker.register(workerURL(), { scope: "/", updateViaCache: "none" });
  const registration = await navigator.serviceWorker.ready;
  // an earlier subscription may belong to another person or another key of the server
  await (await registration.pushManager.getSubscription())?.unsubscribe();
  const made = (await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(form.dataset.push) })).toJSON();
  form.elements.endpoint.value = made.endpoint;
  form.elements.p256dh.value = made.keys.p256dh;
  form.elements.auth.value = made.keys.auth;
  form.submit();
}

async function turnOff() {
  const subscription = await current();
  const entry = subscription && await entryOf(subscription);
  await subscription?.unsubscribe();
  entry?.querySelector("form").submit();
}

async function start() {
  say(problem());
  form.hidden = false;
  const why = problem();
  if (why === "insecure" || why === "unsupported") return;
  const subscription = await current();
  const entry = subscription && await entryOf(subscription);
  if (entry) {
    entry.querySelector("[data-here]").hidden = false;
    entry.querySelector("form").addEventListener("submit", () => { subscription.unsubscribe(); });
  }
  toggle.checked = Boolean(entry) && why === "";
  if (why === "") toggle.disabled = false;
  toggle.addEventListener("change", async () => {
    toggle.disabled = true;
    say("");
    try {
      await (toggle.checked ? turnOn() : turnOff());
    } catch {
      // a browser reports a push service that it cannot reach like every other failure
      toggle.checked = !toggle.checked;
      say("failed");
    }
    toggle.disabled = problem() !== "";
  });
}

if (form) start();
