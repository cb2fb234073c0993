import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

/** The outcome of a run; its status selects one of the four variants. */
export type Outcome = Schemas["Outcome"];

export type Completed = Extract<Outcome, { status: "completed" }>;
export type NeedsInput = Extract<Outcome, { status: "needs_input" }>;
export type Failed = Extract<Outcome, { status: "error" }>;
/** The call is recorded and in progress; the outcome is not known yet. */
export type Pending = Extract<Outcome, { status: "pending" }>;

/** An open interrupt of a run. */
export type OpenInterrupt = Schemas["OpenInterrupt"];

export type Chat = Schemas["Chat"];
export type CreateRequest = Schemas["CreateRequest"];
export type Decide = Schemas["Decide"];
/** The conditions of an approval: `decide(request, { verb: "approve", conditions: { onlyIf: "args.amount <= 100" } })`. */
export type Conditions = Schemas["Conditions"];
export type Run = Schemas["Run"];
export type RunView = Schemas["RunView"];
export type Request = Schemas["Request"];
export type Graph = Schemas["Graph"];
/** How a person is notified. */
export type Notifications = Schemas["Notifications"];
export type SaveNotifications = Schemas["SaveNotifications"];
export type SendReceipt = Schemas["SendReceipt"];
export type Receipt = Schemas["Receipt"];
/** A closed request. */
export type AnsweredRequest = Schemas["AnsweredRequest"];
export type AnswersPage = Omit<Schemas["AnswersPage"], "items"> & { items: AnsweredRequest[] };

export interface Page<T> {
  items: T[];
  /** The cursor of the next page; omitted on the last page. */
  next?: string;
}

/** The filters of a list. */
export type RunsQuery = NonNullable<paths["/api/v1/runs"]["get"]["parameters"]["query"]>;
export type RequestsQuery = NonNullable<paths["/api/v1/requests"]["get"]["parameters"]["query"]>;
export type AnswersQuery = NonNullable<paths["/api/v1/answers"]["get"]["parameters"]["query"]>;
