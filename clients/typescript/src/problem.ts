import type { components } from "./schema.js";

/** The codes that this version knows. A newer server may have more, so a switch over them needs a default. */
export type ProblemCode = components["schemas"]["Problem"]["code"];

/** An error response of a server: an RFC 9457 problem. */
export type ProblemBody = Omit<components["schemas"]["Problem"], "code"> & { code: string };

/** The code of a response that did not come from a Fermata server, but from an intermediary. */
export const httpCode = "http";

/** Thrown for an error response. `code` is stable; `message` is for people. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string | undefined;
  /** The invalid parts of the request. */
  readonly fields: NonNullable<ProblemBody["errors"]>;
  /** The decision that was recorded first, with already_decided. */
  readonly decided: ProblemBody["decided"];
  /** The Retry-After delay in seconds. */
  readonly retryAfter: number | undefined;

  constructor(body: ProblemBody, retryAfter?: number) {
    super([body.code, body.detail].filter(Boolean).join(": "));
    this.status = body.status;
    this.code = body.code;
    this.title = body.title;
    this.detail = body.detail;
    this.fields = body.errors ?? [];
    this.decided = body.decided;
    this.retryAfter = retryAfter;
  }

  /** Whether this problem has the code. The compiler checks the spelling. */
  is(code: ProblemCode | typeof httpCode): boolean {
    return this.code === code;
  }

  /** Whether the same call may succeed later: it is applied once. */
  get again(): boolean {
    return (this.status === 429 && this.code !== "agent_limit") || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** Decodes a problem response. A connection error is thrown unchanged: a retry returns the problem. */
export async function problemOf(response: Response): Promise<Problem> {
  const after = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  const retryAfter = Number.isNaN(after) ? undefined : after;
  const said = await response.text();
  try {
    const body = JSON.parse(said) as Partial<ProblemBody> | null;
    if (typeof body?.code === "string") {
      return new Problem({ title: body.code, ...body, code: body.code, status: response.status }, retryAfter);
    }
  } catch {
    // Not JSON: a proxy's page. The status is sufficient.
  }
  const text = response.statusText || String(response.status);
  return new Problem({ status: response.status, code: httpCode, title: text, detail: text }, retryAfter);
}

/** Throws unless a response has a media type. Other responses come from an intermediary: a sign-in page must not count as success. */
export function expectType(response: Response, type: string): void {
  const got = response.headers.get("Content-Type") ?? "";
  if (got.split(";")[0]?.trim().toLowerCase() !== type) {
    const detail = `not a response of a Fermata server: ${response.status}`;
    throw new Problem({ status: response.status, code: httpCode, title: httpCode, detail });
  }
}
