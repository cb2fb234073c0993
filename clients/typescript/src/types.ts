import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

/** How far a run has come; its status tells which of the four it is. */
export type Outcome = Schemas["Outcome"];

export type Completed = Extract<Outcome, { status: "completed" }>;
export type NeedsInput = Extract<Outcome, { status: "needs_input" }>;
export type Failed = Extract<Outcome, { status: "error" }>;
/** It is recorded and under way, and nobody waited for the outcome. */
export type Pending = Extract<Outcome, { status: "pending" }>;

/** A question that a run waits for. */
export type OpenInterrupt = Schemas["OpenInterrupt"];

export type Chat = Schemas["Chat"];
export type Ask = Schemas["Ask"];
export type Decide = Schemas["Decide"];
export type Run = Schemas["Run"];
export type RunView = Schemas["RunView"];
export type Request = Schemas["Request"];
export type Graph = Schemas["Graph"];
/** A question that is settled. */
export type Answered = Schemas["Answered"];
export type AnswersPage = Omit<Schemas["AnswersPage"], "items"> & { items: Answered[] };

export interface Page<T> {
  items: T[];
  /** The cursor of the next page; not there if this is the last. */
  next?: string;
}

/** What a list can be narrowed down to. */
export type RunsQuery = NonNullable<paths["/api/v1/runs"]["get"]["parameters"]["query"]>;
export type RequestsQuery = NonNullable<paths["/api/v1/requests"]["get"]["parameters"]["query"]>;
export type AnswersQuery = NonNullable<paths["/api/v1/answers"]["get"]["parameters"]["query"]>;
