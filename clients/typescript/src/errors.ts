/**
 * Errors of the client, one class for each remedy.
 *
 * A message gives the fact, the limit and the remedy; a token is in none of them.
 */

import { etagOf } from "./etag.js";
import type { components } from "./schema.js";

export type ProblemBody = components["schemas"]["ProblemBody"];
export type ProblemCode = components["schemas"]["Code"];
export type Fault = components["schemas"]["Fault"];

/** Base of all errors that the client makes itself. */
export class BlackboardError extends Error {
  override name = "BlackboardError";
  /** Whether the same call may succeed later. */
  readonly retryable: boolean = false;
  /** The time in milliseconds that the server asks to wait before a retry. */
  readonly retryAfterMs: number | undefined;
  /** The key of a write that may have been committed all the same: repeated with its key, it is done once. */
  idempotencyKey: string | undefined;

  /** `"unknown"` where a write may have been committed. */
  get outcome(): "unknown" | undefined {
    return this.idempotencyKey === undefined ? undefined : "unknown";
  }
}

/** A refusal of the server, a problem document (RFC 9457). Match on `code`. */
export class Problem extends BlackboardError {
  override name = "Problem";
  override readonly retryable: boolean;
  override readonly retryAfterMs: number | undefined;
  readonly code: ProblemCode;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** The id of the request, as in the server's log. */
  readonly instance: string;
  /** The faulty parts of the body, with JSON Pointers. */
  readonly errors: readonly Fault[];
  /** With `precondition-failed` and `condition-not-met`: the present value, entry or agent. */
  readonly current: unknown;
  /** The present tag of the target, if any. */
  readonly etag: string | undefined;
  /** The session's revision at the refusal, if any. */
  readonly revision: number | undefined;
  /** With `history-compacted`: the oldest revision that is retained. */
  readonly oldestRevision: number | undefined;
  /** The whole document, with the members of single codes. */
  readonly body: ProblemBody & Record<string, unknown>;

  constructor(body: ProblemBody & Record<string, unknown>, response: Response) {
    super(`${body.code}: ${body.detail}${faults(body)}`);
    this.body = body;
    this.code = body.code;
    this.status = response.status;
    this.title = body.title;
    this.detail = body.detail;
    this.instance = body.instance;
    this.errors = body.errors ?? [];
    this.current = body["current"];
    this.retryable = body.retryable === true;
    this.retryAfterMs = retryAfterMs(response);
    this.etag = etagOf(response);
    const revision = response.headers.get("Blackboard-Revision");
    this.revision = revision === null ? undefined : Number(revision);
    const oldest = body["oldest_revision"];
    this.oldestRevision = typeof oldest === "number" ? oldest : undefined;
  }

  /** Returns true if the error is a problem with one of these codes. */
  static is(error: unknown, ...codes: ProblemCode[]): error is Problem {
    return error instanceof Problem && codes.includes(error.code);
  }
}

/** What a wait has seen last. */
export interface Seen {
  /** The value, entry or agent; none if the server never showed it. */
  current?: unknown;
  revision?: number | undefined;
}

/**
 * A wait whose time is over: a problem `condition-not-met` made by the client, with what the wait has seen last as
 * `current`. `cause` is the error of its last piece, if that was not answered.
 */
export class TimeoutError extends Problem {
  override name = "TimeoutError";

  constructor({ current, revision }: Seen, cause?: BlackboardError) {
    const unanswered = cause === undefined ? "" : `, and its last piece was not answered: ${cause.message}`;
    const body = {
      type: "urn:blackboard:problem:condition-not-met",
      title: "Condition not met",
      status: 412,
      detail: `the wait's time is over${unanswered}`,
      instance: "",
      code: "condition-not-met" as const,
      ...(current === undefined ? {} : { current }),
    };
    const headers = revision === undefined ? {} : { "Blackboard-Revision": String(revision) };
    super(body, new Response(null, { status: 412, headers }));
    this.cause = cause;
  }
}

/** A server that was not reached, or whose answer broke off, until the time limit was over. */
export class ConnectionFailed extends BlackboardError {
  override name = "ConnectionFailed";
  override readonly retryable = true;
}

/** An answer that no Blackboard server gives: HTML, broken JSON, a redirect, a proxy's error. */
export class UnexpectedAnswer extends BlackboardError {
  override name = "UnexpectedAnswer";
  override readonly retryable: boolean;
  override readonly retryAfterMs: number | undefined;
  readonly status: number;

  constructor(message: string, response: Response, options: { retryable?: boolean } = {}) {
    super(message);
    this.status = response.status;
    this.retryable = options.retryable ?? false;
    this.retryAfterMs = retryAfterMs(response);
  }
}

/** A server of another name, or of a version whose contract this client does not know. */
export class IncompatibleServer extends BlackboardError {
  override name = "IncompatibleServer";
  readonly server: string;
  readonly version: string;

  constructor(message: string, server: string, version: string) {
    super(message);
    this.server = server;
    this.version = version;
  }
}

/** A value or a name that cannot be sent as it is: no JSON, or no part of an address. */
export class UnsupportedValue extends BlackboardError {
  override name = "UnsupportedValue";
}

/** A conditional read (`If-None-Match`) whose resource still has that tag: status 304. */
export class NotModified extends BlackboardError {
  override name = "NotModified";
  readonly etag: string | undefined;

  constructor(response: Response) {
    super("the resource still has the tag of If-None-Match");
    this.etag = etagOf(response);
  }
}

/** Events after a cursor that are not retained any more: read the board anew, and follow it after `revision`. */
export class HistoryGap extends BlackboardError {
  override name = "HistoryGap";
  /** The session's revision, after which the events go on. */
  readonly revision: number;
  /** The oldest revision that is retained. */
  readonly oldestRevision: number;

  constructor(after: number, { revision, oldest_revision }: components["schemas"]["ResyncBody"]) {
    const told = `the history after revision ${after} is not retained, or does not exist yet`;
    super(`${told}: read the board again, and continue after ${revision}`);
    this.revision = revision;
    this.oldestRevision = oldest_revision;
  }
}

/** A request whose attempts all failed, or whose deadline passed, seen by a wait for its end. */
export class RequestFailed extends BlackboardError {
  override name = "RequestFailed";
  readonly entry: components["schemas"]["EntryBody"];

  constructor(entry: components["schemas"]["EntryBody"]) {
    super(`request ${entry.seq} has failed: ${given(entry.failed?.reason)}`);
    this.entry = entry;
  }
}

/** A request that was cancelled, seen by a wait for its end, or by its worker. */
export class RequestCancelled extends BlackboardError {
  override name = "RequestCancelled";
  readonly entry: components["schemas"]["EntryBody"];

  constructor(entry: components["schemas"]["EntryBody"]) {
    super(`request ${entry.seq} was cancelled: ${given((entry.cancelled ?? entry.cancel)?.reason)}`);
    this.entry = entry;
  }
}

function given(reason: unknown): string {
  return reason === undefined ? "no reason given" : JSON.stringify(reason);
}

/** Returns the faulty parts that the detail does not name itself. */
function faults({ detail, errors = [] }: ProblemBody): string {
  const told = errors.map((fault) => {
    const place = [fault.line == null ? "" : `line ${fault.line}`, fault.pointer ?? ""].join(" ").trim();
    return place === "" ? fault.detail : `${place}: ${fault.detail}`;
  });
  const more = told.filter((text) => !detail.includes(text));
  return more.length === 0 ? "" : ` (${more.join("; ")})`;
}

/** Returns the time of `Retry-After`, which is in seconds or a date. */
function retryAfterMs(response: Response): number | undefined {
  const text = response.headers.get("Retry-After");
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0);
}
