// The service worker shows notifications and opens the request on a click. It does not decide, and
// it stores nothing. The server puts the constant config before this text.

/** Whether a path is the page of a request on this server. */
function isRequest(path) {
  return typeof path === "string" && /^\/requests\/[^/\\?#]+$/.test(path);
}

/** Reads a message. One that cannot be read leads to the inbox. */
function read(data) {
  let n = null;
  try {
    n = data?.json();
  } catch {
    // it is not JSON
  }
  if (typeof n?.title !== "string" || !isRequest(n.path)) return { title: config.fallback, body: "", tag: "", path: "/inbox", quiet: false };
  return { title: n.title, body: String(n.body ?? ""), tag: String(n.tag ?? ""), path: n.path, quiet: n.quiet === true };
}

/** Shows a notification. It replaces an earlier one of the same request. */
function show(data) {
  const n = read(data);
  return self.registration.showNotification(n.title, {
    body: n.body, tag: n.tag, renotify: n.tag !== "" && !n.quiet, silent: n.quiet, icon: config.icon, data: { path: n.path },
  });
}

/** Opens a page of this server, or focuses the window that shows it. */
async function openPage(path) {
  const target = new URL(isRequest(path) ? path : "/inbox", self.location.origin);
  for (const client of await self.clients.matchAll({ type: "window", includeUncontrolled: true })) {
    if (new URL(client.url).pathname === target.pathname) return client.focus();
  }
  return self.clients.openWindow(target.href);
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("push", (event) => event.waitUntil(show(event.data)));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPage(event.notification.data?.path));
});
