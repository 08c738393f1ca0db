/**
 * Work on requests under a claim: one request, or one after another until a worker is stopped.
 *
 * How the work ends decides the end of the claim, which is written to the server in any case.
 */

import { Claim } from "./claims.js";
import type { Task } from "./claims.js";
import type { Api } from "./client.js";
import { Problem, UnexpectedAnswer, UnsupportedValue } from "./errors.js";
import type { BlackboardError } from "./errors.js";
import { leftovers, release } from "./leftovers.js";
import { Deadline, duration, pauseMs, sleep } from "./time.js";
import { newKey } from "./transport.js";
import { isRetryable, onceThere, Pieces } from "./waits.js";
import type { Entry } from "./waits.js";

export interface ClaimOptions {
  /** Members that the request's item has, compared by value. */
  match?: Record<string, unknown> | undefined;
  /** The duration of the claim, which is renewed after a third of it, in milliseconds; 60,000 by default. */
  ttlMs?: number | undefined;
  /** The time to wait for a request, in milliseconds; 0 by default. */
  waitMs?: number | undefined;
  /** Ends the wait, and the work by the task's signal; the request is given back. */
  signal?: AbortSignal | undefined;
}

export interface WorkOptions extends Omit<ClaimOptions, "waitMs" | "signal"> {
  /** The worker ends if it had no request for this long, in milliseconds; never by default. */
  waitMs?: number | undefined;
  /**
   * Stops the worker. The task's signal is aborted too: a task that returns is done all the same, one that throws is
   * given back.
   */
  signal?: AbortSignal | undefined;
  /** Gets a line for each attempt that had no success, with its error; `console.error` by default. */
  log?: ((line: string, error: unknown) => void) | undefined;
}

export type Work<Result> = (task: Task) => Result | Promise<Result>;

/** The end of the work. */
export type Outcome<Result> = { seq: number } & (
  | { outcome: "done"; result: Result }
  | { outcome: "failed"; error: unknown }
  | { outcome: "released" }
  | { outcome: "cancelled"; error: unknown }
  | { outcome: "lost"; error: Problem }
);

const TTL_MS = 60_000;

/** The pause before another attempt, after a first one that threw; twice as long after each further one. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 300_000;

/** Claims a request and works on it. Whether the last try won a claim is found out within `settleMs` after the wait. */
export async function claimNext<Result>(
  api: Api,
  session: string,
  settleMs: number,
  options: ClaimOptions,
  work: Work<Result>,
): Promise<Outcome<Result> | undefined> {
  const claim = await nextClaim(api, session, settleMs, options);
  return claim && attempt(claim, work, conclude);
}

/**
 * Works on one request after another, until the signal, or until there was none within `waitMs`. What an earlier run of
 * the agent has left is released meanwhile.
 */
export async function work(
  api: Api,
  session: string,
  settleMs: number,
  agent: string | undefined,
  fn: Work<unknown>,
  { log = console.error, waitMs = Infinity, ...options }: WorkOptions = {},
): Promise<void> {
  const ended = new AbortController();
  const earlier = await leftovers(api, session, agent, options.signal);
  const released = release(api, session, earlier, options.ttlMs ?? TTL_MS, ended.signal, log);
  try {
    await workOn(api, session, settleMs, fn, { log, waitMs, ...options });
  } finally {
    ended.abort();
    await released;
  }
}

async function workOn(
  api: Api,
  session: string,
  settleMs: number,
  fn: Work<unknown>,
  { log, waitMs, ...options }: WorkOptions & { log: Log },
): Promise<void> {
  const end: Conclude = (claim, ended) => persist(() => conclude(claim, ended), claim, options, log);
  while (!options.signal?.aborted) {
    try {
      const claim = await nextClaim(api, session, settleMs, { waitMs, ...options });
      if (claim === undefined) return;
      const ended = await attempt(claim, fn, end);
      if ("error" in ended) log(`request ${ended.seq}: attempt ${ended.outcome}`, ended.error);
    } catch (error) {
      if (!options.signal?.aborted) throw error;
      if (error !== options.signal.reason) log("the request could not be given back", error);
    }
  }
}

/** Repeats the end of a claim while the server cannot be reached. */
async function persist<T>(end: () => Promise<T>, claim: Claim, { signal }: WorkOptions, log: Log): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await end();
    } catch (error) {
      if (!isRetryable(error)) throw error;
      log(`request ${claim.seq}: its end is not written yet`, error);
      await sleep(pauseMs(tries) + (error.retryAfterMs ?? 0), signal);
    }
  }
}

type Log = (line: string, error: unknown) => void;

/** Works on a claimed request, and ends the claim. */
async function attempt<Result>(claim: Claim, work: Work<Result>, end: Conclude): Promise<Outcome<Result>> {
  try {
    const ended = await outcomeOf(() => work(claim.task));
    await claim.settle();
    if (claim.outer?.aborted && "error" in ended) {
      await claim.release();
      throw claim.outer.reason;
    }
    return await end(claim, ended);
  } finally {
    await claim.settle();
  }
}

type Ended<Result> = { result: Result } | { error: unknown };

type Conclude = <Result>(claim: Claim, ended: Ended<Result>) => Promise<Outcome<Result>>;

async function outcomeOf<Result>(work: () => Result | Promise<Result>): Promise<Ended<Result>> {
  try {
    return { result: await work() };
  } catch (error) {
    return { error };
  }
}

/** Ends the claim as the work ended, unless the work has done so. A result that cannot be stored is a failure. */
async function conclude<Result>(claim: Claim, ended: Ended<Result>): Promise<Outcome<Result>> {
  if ("error" in ended) {
    await claim.fail(ended.error, { retryInMs: retryMs(claim) });
    return seen(claim);
  }
  const written = await outcomeOf(() => claim.finish(ended.result));
  if (!("error" in written)) return seen(claim);
  const { error } = written;
  const isRejected = error instanceof UnsupportedValue || (error instanceof Problem && !error.retryable);
  if (!isRejected) throw error;
  return conclude(claim, { error });
}

/** The time until another attempt, so that a request that always fails leaves room to others. What was given back is no failure. */
function retryMs(claim: Claim): number {
  const failures = claim.task.pastAttempts.filter((attempt) => attempt.outcome !== "released");
  return Math.min(RETRY_MS * 2 ** failures.length, RETRY_MS_MAX);
}

/** How a claim that is over has ended. */
function seen<Result>({ seq, ended, lost, cancelled }: Claim): Outcome<Result> {
  if (cancelled !== undefined && ended?.end !== "done") return { seq, outcome: "cancelled", error: cancelled };
  if (ended === undefined) return { seq, outcome: "lost", error: lost as Problem };
  if (ended.end === "done") return { seq, outcome: "done", result: ended.result as Result };
  if (ended.end === "failed") return { seq, outcome: "failed", error: ended.error };
  return { seq, outcome: "released" };
}

async function nextClaim(
  api: Api,
  session: string,
  settleMs: number,
  options: ClaimOptions,
): Promise<Claim | undefined> {
  const ttlMs = options.ttlMs ?? TTL_MS;
  const entry = await nextEntry(api, session, settleMs, options, duration(ttlMs));
  const claim = entry && new Claim(api, session, entry, ttlMs, options.signal);
  if (!options.signal?.aborted) return claim;
  await claim?.release();
  throw options.signal.reason;
}

/**
 * Claims in pieces. A piece whose answer was lost is repeated as it was, its key and its time too: if the server has
 * let it win a claim, the repeat is answered with that claim, at once.
 */
async function nextEntry(
  api: Api,
  session: string,
  settleMs: number,
  { match, waitMs = 0, signal }: ClaimOptions,
  ttl: string,
): Promise<Claimed | undefined> {
  const pieces = new Pieces({ limitMs: waitMs, signal });
  const settling = new Deadline(waitMs + settleMs);
  const body = match === undefined ? { ttl } : { ttl, match };
  for (let piece = pieceOf(pieces); ;) {
    if (signal?.aborted) return piece.isRepeat ? wonBefore(api, session, piece.params, body) : undefined;
    let unanswered: BlackboardError | undefined;
    try {
      const { params } = piece;
      const claimed = await onceThere(api, session, pieces, () =>
        claimOnce(api, session, params, body, pieces.init),
      ).catch((error: unknown) => {
        // There is no session yet.
        if (!Problem.is(error, "condition-not-met")) throw error;
        return undefined;
      });
      if (claimed || pieces.isOver) return claimed;
      piece = pieceOf(pieces);
    } catch (error) {
      if (signal?.aborted) return wonBefore(api, session, piece.params, body);
      if (!isRetryable(error) || settling.leftMs === 0) throw error;
      unanswered = error;
      // A repeat that was held had won nothing before. Once the time is over, a piece that is answered at once ends it.
      const isEmpty = piece.isRepeat && piece.params.query.wait !== "0ms" && (pieces.isHeld || isCut(error));
      piece = isEmpty && pieces.isOver ? pieceOf(pieces) : { ...piece, isRepeat: true };
    }
    await pieces.pause(unanswered).catch((error: unknown) => {
      if (!signal?.aborted) throw error;
    });
  }
}

/** A claimed request, with its tag. */
type Claimed = Entry & { etag: string };

type PieceParams = { query: { wait: string }; header: { "Idempotency-Key": string } };

async function claimOnce(
  api: Api,
  session: string,
  params: PieceParams,
  body: { ttl: string; match?: Record<string, unknown> },
  init: { signal?: AbortSignal; isPiece?: boolean },
): Promise<Claimed | undefined> {
  const route = "/v1/sessions/{session}/requests/claim";
  return (await api.POST(route, { params: { path: { session }, ...params }, body, ...init })).data;
}

/**
 * Returns the claim that a piece had won when its signal was aborted. Under its key, another time to wait is rejected
 * if the piece had won a claim, and else ends at once.
 */
async function wonBefore(
  api: Api,
  session: string,
  params: PieceParams,
  body: { ttl: string; match?: Record<string, unknown> },
): Promise<Claimed | undefined> {
  const init = { isPiece: true };
  try {
    return await claimOnce(api, session, { ...params, query: { wait: "0ms" } }, body, init);
  } catch (error) {
    if (!Problem.is(error, "idempotency-key-reused")) return undefined;
  }
  // If this is not answered either, the claim expires.
  return claimOnce(api, session, params, body, init).catch(() => undefined);
}

/** A piece of a wait for a claim. */
function pieceOf(pieces: Pieces): { params: PieceParams; isRepeat: boolean } {
  const params = { query: { wait: pieces.wait() }, header: { "Idempotency-Key": newKey() } };
  return { params, isRepeat: false };
}

/** Whether a proxy waited for the server in vain. */
function isCut(error: BlackboardError): boolean {
  return error instanceof UnexpectedAnswer && error.status === 504;
}
