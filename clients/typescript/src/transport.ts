import { expectType, problemOf, Problem } from "./problem.js";

/** The server, the credential and the timeouts. */
export interface ClientOptions {
  /** The URL of the server, for example https://fermata.example. */
  url: string;
  /** The API key. */
  token: string;
  /** How often a call is attempted; 5 by default. */
  tries?: number;
  /** The timeout of one attempt in milliseconds; 90 seconds by default. Event streams have no timeout. */
  timeout?: number;
  /**
   * How long an event stream may be silent before the client reconnects, in milliseconds; a minute by default. A server
   * sends a heartbeat every 15 seconds, unless `limits.heartbeat` of its configuration differs.
   */
  idleTimeout?: number;
  /** Replaces the global fetch: for proxies, tracing, tests. */
  fetch?: typeof globalThis.fetch;
}

/** The options of every call. */
export interface CallOptions {
  /** Aborts the call. It may have been applied nevertheless: repeat it with the same ids to find out. */
  signal?: AbortSignal;
}

export interface Call extends CallOptions {
  method?: "GET" | "POST" | "PUT";
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
}

const longestPause = 60_000;

/** Makes calls with retries. The body of a call is created once, so every attempt has the same ids. */
export class Transport {
  readonly tries: number;
  readonly idleTimeout: number;
  readonly #base: string;
  readonly #token: string;
  readonly #timeout: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: ClientOptions) {
    const url = new URL(options.url); // throws if it is invalid
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      throw new TypeError(`${options.url} is not an http or https URL`);
    }
    this.#base = url.origin + url.pathname.replace(/\/+$/, "") + "/api/v1";
    this.#token = options.token;
    this.tries = options.tries ?? 5;
    this.idleTimeout = options.idleTimeout ?? 60_000;
    this.#timeout = options.timeout ?? 90_000;
    this.#fetch = options.fetch ?? globalThis.fetch;
  }

  /** Makes a call and decodes its response. */
  async json<T>(path: string, call: Call = {}): Promise<T> {
    expectNames(path);
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    for (let tried = 1; ; tried++) {
      try {
        return await this.#once<T>(path, call, body);
      } catch (error) {
        if (tried >= this.tries || !mayRepeat(error, call.signal)) {
          throw error;
        }
        await pause(tried, error, call.signal);
      }
    }
  }

  async #once<T>(path: string, call: Call, body: string | undefined): Promise<T> {
    const limit = limited(this.#timeout, call.signal);
    try {
      const response = await this.send(path, call, body, limit.signal);
      if (response.status === 204) {
        return undefined as T;
      }
      expectType(response, "application/json");
      return (await response.json()) as T;
    } finally {
      limit.clear();
    }
  }

  /** Makes one attempt. An error response is thrown as a {@link Problem}. */
  async send(path: string, call: Call, body?: string, signal?: AbortSignal): Promise<Response> {
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) {
        url.searchParams.set(name, String(value));
      }
    }
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#token}`, Accept: "application/json", ...call.headers };
    const init: RequestInit = { method: call.method ?? "GET", headers, redirect: "error" };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = body;
    }
    if (signal) {
      init.signal = signal;
    }
    const response = await this.#fetch(url.href, init);
    if (!response.ok) {
      throw await problemOf(response);
    }
    return response;
  }
}

/** Rejects a path with an empty id, or one that fetch would normalize: the call would be about another object. */
export function expectNames(path: string): void {
  const bad = path.slice(1).split("/").find((name) => name === "" || name === "." || name === "..");
  if (bad !== undefined) {
    throw new RangeError(`"${bad}" is not a valid id: nothing was sent`);
  }
}

/** Whether the call may succeed later. Other errors are connection errors: the result is unknown, so the call is repeated. */
export function mayRepeat(error: unknown, signal?: AbortSignal): boolean {
  if (signal?.aborted || error instanceof SyntaxError) {
    return false;
  }
  return error instanceof Problem ? error.again : true;
}

/** Waits before the next attempt, with exponential backoff, jitter, and at least the Retry-After delay. */
export async function pause(tried: number, error: unknown, signal?: AbortSignal): Promise<void> {
  const asked = error instanceof Problem ? (error.retryAfter ?? 0) * 1000 : 0;
  const least = Math.min(Math.max(asked, 50 * 2 ** Math.min(tried, 7)), longestPause);
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, least * (1 + Math.random() / 2));
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) {
      stop();
    }
  });
}

/** A signal that aborts after a timeout, or with another signal. (AbortSignal.any is not in Node 18.) */
function limited(timeout: number, outer?: AbortSignal): { signal: AbortSignal; clear: () => void } {
  const control = new AbortController();
  const follow = () => control.abort(outer?.reason);
  const timer = setTimeout(() => control.abort(new DOMException("timeout: no response from the server", "TimeoutError")), timeout);
  if (outer?.aborted) {
    follow();
  }
  outer?.addEventListener("abort", follow, { once: true });
  return {
    signal: control.signal,
    clear: () => {
      clearTimeout(timer);
      outer?.removeEventListener("abort", follow);
    },
  };
}
