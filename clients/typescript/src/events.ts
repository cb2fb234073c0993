import { expectType } from "./problem.js";
import type { components } from "./schema.js";
import type { Outcome } from "./types.js";
import { expectNames, mayRepeat, pause, type CallOptions, type Transport } from "./transport.js";

/**
 * A stored event of a run; `after` takes its id. Its type is created, asked, decided, expired, withdrawn, effect_begun,
 * effect_ended, waiting, parked, completed, failed, cancelled or superseded.
 */
export type HappenedEvent = components["schemas"]["Event"];

/** The outcome of the run when it waits or has ended. */
export interface OutcomeEvent {
  type: "outcome";
  outcome: Outcome;
}

/** A node was entered or left: sent live and not stored. */
export type StepEvent = { type: "step" } & components["schemas"]["Step"];

/** A chunk of a model's output: sent live and not stored. */
export type TokenEvent = { type: "token" } & components["schemas"]["Token"];

export type RunEvent = HappenedEvent | OutcomeEvent | StepEvent | TokenEvent;

/** Whether an event has the outcome of the run. */
export function isOutcome(event: RunEvent): event is OutcomeEvent {
  return event.type === "outcome";
}

/** Whether an event is stored and has an id. */
export function happened(event: RunEvent): event is HappenedEvent {
  return "id" in event;
}

export interface EventsOptions extends CallOptions {
  /** The id of the last event received; by default the beginning. After an event of an earlier run with the same state key, all events of this run follow. */
  after?: string;
}

/**
 * Follows a run until it ends. If the connection is lost, it reconnects and continues after the last delivered event, until
 * the signal aborts. If the server cannot be reached at first, it throws after the usual retries.
 */
export async function* follow(transport: Transport, stateKey: string, options: EventsOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
  const path = `/runs/${encodeURIComponent(stateKey)}/events`;
  expectNames(path);
  let after = options.after ?? "";
  let met = false; // after a first connection, an outage or a broken connection is not a reason to give up
  for (let lost = 1; ; lost++) {
    let why: unknown;
    const control = new AbortController(); // closes the connection when the consumer stops
    const stop = () => control.abort(options.signal?.reason);
    const listen = <T>(next: Promise<T>): Promise<T> => withIdleTimeout(next, transport.idleTimeout, control);
    options.signal?.addEventListener("abort", stop, { once: true });
    try {
      options.signal?.throwIfAborted();
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (after !== "") {
        headers["Last-Event-ID"] = after;
      }
      const response = await listen(transport.send(path, { headers }, undefined, control.signal));
      expectType(response, "text/event-stream"); // otherwise the client would read a proxy's page again and again
      met = true;
      for await (const message of messages(response, listen)) {
        lost = 0; // back off from a server that closes the stream after the first event
        const event = read(message);
        if (happened(event)) {
          after = event.id;
        }
        yield event;
        if (isOutcome(event) && isOver(event.outcome)) {
          return;
        }
      }
    } catch (error) {
      if ((!met && lost >= transport.tries) || !mayRepeat(error, options.signal)) {
        throw options.signal?.aborted ? options.signal.reason : error;
      }
      why = error;
    } finally {
      options.signal?.removeEventListener("abort", stop);
      control.abort();
    }
    await pause(Math.max(lost, 1), why, options.signal);
  }
}

/**
 * Waits for the next data of a stream, and ends it after the idle timeout: the connection may be dead, or the sender may hang.
 * The consumer's processing time does not count.
 */
function withIdleTimeout<T>(next: Promise<T>, idleTimeout: number, control: AbortController): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      const why = new DOMException("idle timeout: no data from the server", "TimeoutError");
      control.abort(why);
      reject(why);
    }, idleTimeout);
    next.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Whether a run has ended. */
export function isOver(outcome: Outcome): boolean {
  return outcome.status === "completed" || outcome.status === "error";
}

interface Message {
  event: string;
  data: string;
}

function read(message: Message): RunEvent {
  const data: unknown = JSON.parse(message.data);
  switch (message.event) {
    case "outcome":
      return { type: "outcome", outcome: data as Outcome };
    case "step":
    case "token":
      return { ...(data as object), type: message.event } as StepEvent | TokenEvent;
    default:
      return data as HappenedEvent;
  }
}

/** Parses server-sent events. An incomplete message before a lost connection is ignored. */
async function* messages(response: Response, listen: <T>(next: Promise<T>) => Promise<T>): AsyncGenerator<Message, void, undefined> {
  if (!response.body) {
    return;
  }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let message: Message = { event: "message", data: "" };
  for (;;) {
    const { done, value } = await listen(reader.read());
    if (done) {
      return;
    }
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/); // a proxy may change line ends
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (message.data !== "") {
          yield message;
        }
        message = { event: "message", data: "" };
        continue;
      }
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "event") {
        message.event = text;
      } else if (name === "data") {
        message.data += text;
      }
    }
  }
}
