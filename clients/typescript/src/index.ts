/**
 * Client of Blackboard: typed routes over `fetch`, with retries, waits and events.
 */

export type { FollowOptions } from "./attention.js";
export type { PastAttempt, Task } from "./claims.js";
export { createClient } from "./client.js";
export type { Api, Call, Client, ClientOptions } from "./client.js";
export {
  BlackboardError,
  ConnectionFailed,
  HistoryGap,
  IncompatibleServer,
  NotModified,
  Problem,
  RequestCancelled,
  RequestFailed,
  TimeoutError,
  UnexpectedAnswer,
  UnsupportedValue,
} from "./errors.js";
export type { Fault, ProblemBody, ProblemCode } from "./errors.js";
export { etagOf } from "./etag.js";
export type { BoardEvent, EventsOptions, ResyncEvent } from "./events.js";
export type { Messages, SendOptions } from "./messages.js";
export { encodeName, stateKeys, statePath } from "./names.js";
export type { StatePath } from "./names.js";
export type { Answered, AskOptions } from "./questions.js";
export type { ClaimOptions, Outcome, Work, WorkOptions } from "./requests.js";
export type { components, operations, paths } from "./schema.js";
export type { Moment, Requests, Session, SubmitOptions, Verdict } from "./session.js";
export type { Updated, UpdateOptions } from "./state.js";
export type { ServerDescription } from "./transport.js";
export type { Attention, AttentionQuery, EntriesOptions, Entry, EntryPage, Log, WaitOptions, Waits } from "./waits.js";
