import { expectType } from "./problem.js";
import type { components } from "./schema.js";
import type { Outcome } from "./types.js";
import { expectNames, mayRepeat, pause, type CallOptions, type Transport } from "./transport.js";

/**
 * Something that happened to a run; its id is what `after` takes. Its type is created, asked, decided, expired, withdrawn, effect_begun,
 * effect_ended, waiting, parked, completed, failed, cancelled or superseded.
 */
export type HappenedEvent = components["schemas"]["Event"];

/** How far the run had come when it came to rest. */
export interface OutcomeEvent {
  type: "outcome";
  outcome: Outcome;
}

/** A place in the run that was entered or left: told at that moment, and not kept. */
export type StepEvent = { type: "step" } & components["schemas"]["Step"];

/** A piece of what a model says: told at that moment, and not kept. */
export type TokenEvent = { type: "token" } & components["schemas"]["Token"];

export type RunEvent = HappenedEvent | OutcomeEvent | StepEvent | TokenEvent;

/** Whether an event says how far the run has come. */
export function isOutcome(event: RunEvent): event is OutcomeEvent {
  return event.type === "outcome";
}

/** Whether an event is kept, and has an id. */
export function happened(event: RunEvent): event is HappenedEvent {
  return "id" in event;
}

export interface EventsOptions extends CallOptions {
  /** The id of the last event that was seen; before the first if not said. Behind an event of another run, which had the state key before, comes all of this one. */
  after?: string;
}

/**
 * Follows a run until it is over. If the connection is lost it connects again, and goes on behind the last event that it has handed out: as soon as the
 * server is there, until the signal says that it is enough. A server that was not there to begin with is an error, after the tries of any other call.
 */
export async function* follow(transport: Transport, stateKey: string, options: EventsOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
  const path = `/runs/${encodeURIComponent(stateKey)}/events`;
  expectNames(path);
  let after = options.after ?? "";
  let met = false; // the server was there: that it is gone for a while, or a connection breaks while nothing happens, is no reason to give up
  for (let lost = 1; ; lost++) {
    let why: unknown;
    const control = new AbortController(); // ends the connection when whoever reads has enough
    const stop = () => control.abort(options.signal?.reason);
    const listen = <T>(word: Promise<T>): Promise<T> => impatient(word, transport.silence, control);
    options.signal?.addEventListener("abort", stop, { once: true });
    try {
      options.signal?.throwIfAborted();
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (after !== "") {
        headers["Last-Event-ID"] = after;
      }
      const response = await listen(transport.send(path, { headers }, undefined, control.signal));
      expectType(response, "text/event-stream"); // or one would read a proxy's page again and again, and wait for ever
      met = true;
      for await (const message of messages(response, listen)) {
        lost = 0; // a server that only says hello, and goes, is left in peace for longer each time
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
 * Waits for the next word of a stream, and ends it if none comes for too long: what it comes through may be dead without a sign, or whoever sends it may stand
 * still. The time that the reader takes for what has come does not count.
 */
function impatient<T>(word: Promise<T>, silence: number, control: AbortController): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      const why = new DOMException("the server says nothing", "TimeoutError");
      control.abort(why);
      reject(why);
    }, silence);
    word.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Whether a run is over. */
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

/** Reads server-sent events. A message counts when it has ended: half of one, before a connection was lost, is none. */
async function* messages(response: Response, listen: <T>(word: Promise<T>) => Promise<T>): AsyncGenerator<Message, void, undefined> {
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
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/); // a proxy may have its own ends of lines
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
