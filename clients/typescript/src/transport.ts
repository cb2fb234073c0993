import { expectType, problemOf, Problem } from "./problem.js";

/** Where a server is, who calls, and how patient the caller is. */
export interface ClientOptions {
  /** The address of the server, as https://fermata.example. */
  url: string;
  /** The API key. */
  token: string;
  /** How often a call is made before the client gives up; 5 if not said. */
  tries?: number;
  /** How long one try may take, in milliseconds; 90 seconds if not said. Streams of events are not limited. */
  timeout?: number;
  /**
   * How long a stream of events may be silent before it is left for another one, in milliseconds; a minute if not said. A server says every 15 seconds that it
   * is there, unless its settings have another `limits.heartbeat`.
   */
  silence?: number;
  /** In the place of the global fetch: for proxies, tracing, tests. */
  fetch?: typeof globalThis.fetch;
}

/** What every call takes. */
export interface CallOptions {
  /** Ends the call. What was sent may count all the same: repeat it with the same ids to know. */
  signal?: AbortSignal;
}

export interface Call extends CallOptions {
  method?: "GET" | "POST";
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
}

const longestPause = 60_000;

/** Makes calls, again and again if need be. The body of a call is made once, so every try carries the same ids. */
export class Transport {
  readonly tries: number;
  readonly silence: number;
  readonly #base: string;
  readonly #token: string;
  readonly #timeout: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: ClientOptions) {
    const url = new URL(options.url); // throws if it is none
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      throw new TypeError(`${options.url} is no http or https URL`);
    }
    this.#base = url.origin + url.pathname.replace(/\/+$/, "") + "/api/v1";
    this.#token = options.token;
    this.tries = options.tries ?? 5;
    this.silence = options.silence ?? 60_000;
    this.#timeout = options.timeout ?? 90_000;
    this.#fetch = options.fetch ?? globalThis.fetch;
  }

  /** Makes a call and reads its answer. */
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

  /** Makes one try. An answer that is none is thrown as a {@link Problem}. */
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

/** Refuses a path in which a run or a request has an empty name, or one that fetch takes for another folder: the call would be about something else. */
export function expectNames(path: string): void {
  const bad = path.slice(1).split("/").find((name) => name === "" || name === "." || name === "..");
  if (bad !== undefined) {
    throw new RangeError(`"${bad}" is no id of a run or a request: nothing was sent`);
  }
}

/** Whether the same call may work later. What is no problem is a connection: nobody knows whether it arrived, so it is repeated. */
export function mayRepeat(error: unknown, signal?: AbortSignal): boolean {
  if (signal?.aborted || error instanceof SyntaxError) {
    return false;
  }
  return error instanceof Problem ? error.again : true;
}

/** Waits before the next try: longer each time, at least as long as the server said, and not all callers at once. */
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

/** A signal that comes after a time, or with another one. (AbortSignal.any is not in Node 18.) */
function limited(timeout: number, outer?: AbortSignal): { signal: AbortSignal; clear: () => void } {
  const control = new AbortController();
  const follow = () => control.abort(outer?.reason);
  const timer = setTimeout(() => control.abort(new DOMException("the server did not answer in time", "TimeoutError")), timeout);
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
