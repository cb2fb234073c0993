export { Client, newId } from "./client.js";
export type { DecideOptions, ResumeOptions, StartOptions, WaitOptions } from "./client.js";
export { happened, isOutcome, isOver } from "./events.js";
export type { EventsOptions, HappenedEvent, OutcomeEvent, RunEvent, StepEvent, TokenEvent } from "./events.js";
export { httpCode, Problem } from "./problem.js";
export type { ProblemBody, ProblemCode } from "./problem.js";
export type { CallOptions, ClientOptions } from "./transport.js";
export type {
  AnsweredRequest, AnswersPage, AnswersQuery, Conditions, CreateRequest, Completed, Failed, Graph, NeedsInput, Notifications, OpenInterrupt, Outcome, Page, Pending, Receipt, Request, RequestsQuery, Run, RunsQuery, RunView, SaveNotifications, SendReceipt,
} from "./types.js";
