import { randomUUID } from "node:crypto";

import { follow, isOutcome, isOver, type EventsOptions, type RunEvent } from "./events.js";
import { Transport, type Call, type CallOptions, type ClientOptions } from "./transport.js";
import type { AnswersPage, AnswersQuery, Ask, Chat, Decide, Graph, Outcome, Page, Request, RequestsQuery, Run, RunsQuery, RunView } from "./types.js";

/** How long the server may wait for an outcome before it answers that the call is recorded and under way. */
export interface WaitOptions extends CallOptions {
  /** In seconds, 60 at most; 0 is not at all. The server decides if not said. It never waits for a person. */
  wait?: number;
}

export interface StartOptions extends WaitOptions {
  /** The handle of the run. One that nobody else has if not said. */
  stateKey?: string;
  /** Tells this start from another one of the same graph with the same input. */
  startId?: string;
  /** End the run that has the state key, if it began with something else. */
  supersede?: boolean;
}

export interface ResumeOptions extends WaitOptions {
  /** Names this answer: the same answer with the same id counts once. One that nobody else has if not said. */
  resumeId?: string;
}

export interface DecideOptions extends ResumeOptions {
  /** The digest of what was shown. That of the request if a request is given; a decision on something else is refused. */
  shown?: string;
}

/**
 * Speaks to a server.
 *
 * Every call can be repeated: starts and answers have ids, and count once. So the client repeats by itself what a server did not answer, or
 * answered with 429, 502, 503 or 504, with the same ids. What a server refuses is thrown as a {@link Problem}.
 */
export class Client {
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
  }

  /** Starts a run, and says how far it has come. */
  start(graphId: string, input: unknown, options: StartOptions = {}): Promise<Outcome> {
    const { stateKey = `key_${newId()}`, startId, supersede } = options; // without a key a repeated start would be a second run
    const body: Chat = { graphId, stateKey, input };
    if (startId !== undefined) {
      body.startId = startId;
    }
    if (supersede) {
      body.supersede = true;
    }
    return this.#post("/ai/chat", body, options);
  }

  /** Answers the one question that a run waits for. */
  resume(stateKey: string, value: unknown, options: ResumeOptions = {}): Promise<Outcome> {
    const body: Chat = { stateKey, resumeId: options.resumeId ?? newId(), resumeValue: value };
    return this.#post("/ai/chat", body, options);
  }

  /** Answers some of the questions that a run waits for, by their ids. The others stay open. */
  resumeTargets(stateKey: string, values: Record<string, unknown>, options: ResumeOptions = {}): Promise<Outcome> {
    const body: Chat = { stateKey, resumeId: options.resumeId ?? newId(), resumeTargets: values };
    return this.#post("/ai/chat", body, options);
  }

  /** Decides on a request. Given the request and not its id alone, the decision counts only if this is still what is asked. */
  decide(request: Request | string, answer: unknown, options: DecideOptions = {}): Promise<Outcome> {
    const body: Decide = { resumeId: options.resumeId ?? newId(), answer };
    const shown = options.shown ?? (typeof request === "string" ? undefined : request.shown);
    if (shown !== undefined) {
      body.shown = shown;
    }
    const id = typeof request === "string" ? request : request.id;
    return this.#post(`/requests/${encodeURIComponent(id)}/decision`, body, options);
  }

  /** Asks people for a decision on behalf of an agent that the server does not execute. */
  ask(ask: Ask, options: CallOptions = {}): Promise<Outcome> {
    return this.#post("/requests", { ...ask, stateKey: ask.stateKey ?? `ask_${newId()}` }, options);
  }

  /** Answers what somebody who has to decide asked back; which question is counted from 1. The request stays open. */
  reply(id: string, question: number, text: string, options: CallOptions = {}): Promise<Request> {
    const call: Call = { ...options, method: "POST", body: { question, text }, headers: { "Idempotency-Key": newId() } };
    return this.#transport.json(`/requests/${encodeURIComponent(id)}/reply`, call);
  }

  /**
   * What was answered, expired or was withdrawn behind a cursor, in order and each once; without one, from the beginning. It is for an agent that asks and
   * cannot be called. A page may be empty although there is more: there is no more yet if `next` is the cursor that was given.
   */
  answers(query: AnswersQuery = {}, options: CallOptions = {}): Promise<AnswersPage> {
    return this.#get("/answers", query, options);
  }

  /** Waits until a run asks something or is over; with `over`, past whatever it asks, until it is over. */
  async wait(stateKey: string, options: CallOptions & { over?: boolean } = {}): Promise<Outcome> {
    for await (const event of this.events(stateKey, options)) {
      if (isOutcome(event) && (!options.over || isOver(event.outcome))) {
        return event.outcome;
      }
    }
    throw new Error(`the events of ${stateKey} ended without an outcome`);
  }

  /** What happens to a run, until it is over. A lost connection is made again and goes on where it was. */
  events(stateKey: string, options: EventsOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
    return follow(this.#transport, stateKey, options);
  }

  /** The runs of the account, the newest first. */
  runs(query: RunsQuery = {}, options: CallOptions = {}): Promise<Page<Run>> {
    const { status, ...rest } = query;
    return this.#get("/runs", { ...rest, status: status?.join(",") }, options);
  }

  /** A run with what it came to and what it asked. */
  run(stateKey: string, options: CallOptions = {}): Promise<RunView> {
    return this.#get(`/runs/${encodeURIComponent(stateKey)}`, {}, options);
  }

  /** Ends a run. */
  async cancel(stateKey: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.json(`/runs/${encodeURIComponent(stateKey)}/cancel`, { ...options, method: "POST" });
  }

  /** What people are asked, the oldest first. */
  requests(query: RequestsQuery = {}, options: CallOptions = {}): Promise<Page<Request>> {
    return this.#get("/requests", query, options);
  }

  /** One request. */
  request(id: string, options: CallOptions = {}): Promise<Request> {
    return this.#get(`/requests/${encodeURIComponent(id)}`, {}, options);
  }

  /** What can be run. */
  graphs(options: CallOptions = {}): Promise<Page<Graph>> {
    return this.#get("/graphs", {}, options);
  }

  /** Something that can be run, with a drawing. */
  graph(graphId: string, options: CallOptions = {}): Promise<Graph> {
    return this.#get(`/graphs/${encodeURIComponent(graphId)}`, {}, options);
  }

  /** The graph of a run, with the nodes marked in its drawing at which the run waits. */
  graphOf(stateKey: string, options: CallOptions = {}): Promise<Graph> {
    return this.#get(`/runs/${encodeURIComponent(stateKey)}/graph`, {}, options);
  }

  #get<T>(path: string, query: NonNullable<Call["query"]>, { signal }: CallOptions): Promise<T> {
    return this.#transport.json<T>(path, signal ? { query, signal } : { query });
  }

  #post(path: string, body: unknown, { wait, signal }: WaitOptions): Promise<Outcome> {
    const call: Call = { method: "POST", body };
    if (wait !== undefined) {
      call.headers = { Prefer: `wait=${wait}` };
    }
    if (signal) {
      call.signal = signal;
    }
    return this.#transport.json<Outcome>(path, call);
  }
}

/** Makes an id that nobody else has. */
export function newId(): string {
  return randomUUID().replaceAll("-", "");
}
