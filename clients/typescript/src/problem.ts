import type { components } from "./schema.js";

/** The codes that this version knows. A newer server may have more, so a switch over them needs a default. */
export type ProblemCode = components["schemas"]["Problem"]["code"];

/** What a server says in the place of an answer: an RFC 9457 problem. */
export type ProblemBody = Omit<components["schemas"]["Problem"], "code"> & { code: string };

/** The code of an answer that did not come from a Fermata server, but from somebody in between. */
export const httpCode = "http";

/** Thrown when a server refuses. `code` does not change between versions; `message` is for people. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string | undefined;
  /** What is wrong with which part of the request. */
  readonly fields: NonNullable<ProblemBody["errors"]>;
  /** Who decided before, with already_decided. */
  readonly decided: ProblemBody["decided"];
  /** After how many seconds the server would like to be asked again. */
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

  /** Whether this is a problem with that code. The compiler knows the codes, so a misspelt one is found. */
  is(code: ProblemCode | typeof httpCode): boolean {
    return this.code === code;
  }

  /** Whether the same call may work later: it counts once, however often it is made. */
  get again(): boolean {
    return this.status === 429 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** Reads the problem out of an answer. A connection that is lost on the way is thrown as it comes: asked again, the server says the code. */
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
    // It is no JSON: a proxy's page. The status says enough.
  }
  const text = response.statusText || String(response.status);
  return new Problem({ status: response.status, code: httpCode, title: text, detail: text }, retryAfter);
}

/** Throws unless an answer is of a type. What is not comes from somebody in between: a page to sign in is not the word that something was done. */
export function expectType(response: Response, type: string): void {
  const got = response.headers.get("Content-Type") ?? "";
  if (got.split(";")[0]?.trim().toLowerCase() !== type) {
    const detail = `this is no answer of a Fermata server: ${response.status}`;
    throw new Problem({ status: response.status, code: httpCode, title: httpCode, detail });
  }
}
