// Creates and uses passkeys. A form with data-passkey="create" or "get" is shown if the browser has
// passkeys. When it is submitted, the script gets the options from data-options, lets the
// authenticator respond, writes "state" and "response" into the form, and sends it.

const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const known = (list) => (list ?? []).map((c) => ({...c, id: bytes(c.id)}));

async function create(options) {
  const made = await navigator.credentials.create({publicKey: {
    ...options, challenge: bytes(options.challenge), user: {...options.user, id: bytes(options.user.id)}, excludeCredentials: known(options.excludeCredentials),
  }});
  return {...common(made), response: {
    clientDataJSON: text(made.response.clientDataJSON), attestationObject: text(made.response.attestationObject), transports: made.response.getTransports?.() ?? [],
  }};
}

async function get(options) {
  const used = await navigator.credentials.get({publicKey: {...options, challenge: bytes(options.challenge), allowCredentials: known(options.allowCredentials)}});
  const r = used.response;
  return {...common(used), response: {
    clientDataJSON: text(r.clientDataJSON), authenticatorData: text(r.authenticatorData), signature: text(r.signature), userHandle: r.userHandle ? text(r.userHandle) : undefined,
  }};
}

const common = (c) => ({id: c.id, rawId: text(c.rawId), type: c.type, clientExtensionResults: c.getClientExtensionResults()});

async function respond(form) {
  const answer = await fetch(form.dataset.options, {method: "POST", body: new URLSearchParams(new FormData(form)), headers: {Accept: "application/json"}});
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Error(problem.detail ?? form.dataset.failed);
  }
  const {options, state} = await answer.json();
  const response = await (form.dataset.passkey === "create" ? create : get)(options);
  form.elements.state.value = state;
  form.elements.response.value = JSON.stringify(response);
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential) continue;
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const alert = form.querySelector("[role=alert]"), button = form.querySelector("button");
    alert.textContent = "";
    button.disabled = true;
    try {
      await respond(form);
      form.submit();
    } catch (error) {
      // a browser reports what the person cancelled and what timed out alike
      alert.textContent = error instanceof DOMException ? form.dataset.failed : error.message;
      button.disabled = false;
    }
  });
}
