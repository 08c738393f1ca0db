/**
 * Work on requests under a claim, which is renewed while the work goes on.
 *
 * The work ends in one of four ways, and the server is told of each: a result, a failure, the request given back, or
 * a claim that was lost to another agent.
 */

import type { Api } from "./client.js";
import { Problem, UnexpectedAnswer, UnsupportedValue } from "./errors.js";
import type { BlackboardError } from "./errors.js";
import { jsonText } from "./json.js";
import { Deadline, duration, TIMER_MS_MAX } from "./time.js";
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

/** A claimed request. */
export interface Task {
  readonly seq: number;
  readonly item: Record<string, unknown>;
  readonly entry: Entry;
  /** Aborted once the claim is lost, or by the signal of the options. */
  readonly signal: AbortSignal;
  /** For the query of writes: they are refused once the claim is lost. */
  readonly guard: { claim: number; fence: number };
  /** Gives the request back for another agent; what the work returns does not matter then. */
  release(): Promise<void>;
}

export type Work<Result> = (task: Task) => Result | Promise<Result>;

/** The end of the work. */
export type Outcome<Result> = { seq: number } & (
  | { outcome: "done"; result: Result }
  | { outcome: "failed"; error: unknown }
  | { outcome: "released" }
  | { outcome: "lost"; error: Problem }
);

const TTL_MS = 60_000;

/** The longest pause after a renewal that failed. */
const AGAIN_MS_MAX = 1_000;

/** Refusals that tell that the claim is another's, or nobody's. */
const LOST = ["stale-fence", "already-claimed", "illegal-transition", "entry-not-found", "session-not-found"] as const;

/** Claims a request and works on it. Whether the last try won a claim is found out within `settleMs` after the wait. */
export async function claimNext<Result>(
  api: Api,
  session: string,
  settleMs: number,
  options: ClaimOptions,
  work: Work<Result>,
): Promise<Outcome<Result> | undefined> {
  const ttlMs = options.ttlMs ?? TTL_MS;
  const entry = await nextEntry(api, session, settleMs, options, duration(ttlMs));
  if (entry === undefined) return undefined;
  const claim = new Claim(api, session, entry, ttlMs, options.signal);
  const ended = await attempt(() => work(claim.task));
  await claim.settle();
  if (options.signal?.aborted && "error" in ended) {
    await claim.release();
    throw options.signal.reason;
  }
  return conclude(claim, ended);
}

type Ended<Result> = { result: Result } | { error: unknown };

async function attempt<Result>(work: () => Result | Promise<Result>): Promise<Ended<Result>> {
  try {
    return { result: await work() };
  } catch (error) {
    return { error };
  }
}

/** Tells the server how the work ended. A result that it does not take is a failure. */
async function conclude<Result>(claim: Claim, ended: Ended<Result>): Promise<Outcome<Result>> {
  const { seq } = claim;
  if (claim.isReleased) return { seq, outcome: "released" };
  if ("result" in ended) {
    const { result } = ended;
    const told = await attempt(() => claim.finish("done", result === undefined ? {} : { result }));
    if (!("error" in told)) {
      return claim.lost ? { seq, outcome: "lost", error: claim.lost } : { seq, outcome: "done", result };
    }
    const { error } = told;
    const isRefused = error instanceof UnsupportedValue || (error instanceof Problem && !error.retryable);
    if (!isRefused) throw error;
    return conclude(claim, { error });
  }
  const { error } = ended;
  await claim.finish("failed", { reason: reasonOf(error) });
  return claim.lost ? { seq, outcome: "lost", error: claim.lost } : { seq, outcome: "failed", error };
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
): Promise<Entry | undefined> {
  const pieces = new Pieces({ limitMs: waitMs, signal });
  const settling = new Deadline(waitMs + settleMs);
  const body = match === undefined ? { ttl } : { ttl, match };
  for (let piece = pieceOf(pieces); ;) {
    let unanswered: BlackboardError | undefined;
    try {
      const { params } = piece;
      const claimed = await onceThere(api, session, pieces, async () => {
        const route = "/v1/sessions/{session}/requests/claim";
        return (await api.POST(route, { params: { path: { session }, ...params }, body, ...pieces.init })).data;
      }).catch((error: unknown) => {
        // There is no session yet.
        if (!Problem.is(error, "condition-not-met")) throw error;
        return undefined;
      });
      if (claimed || pieces.isOver) return claimed;
      piece = pieceOf(pieces);
    } catch (error) {
      if (!isRetryable(error) || settling.leftMs === 0) throw error;
      unanswered = error;
      // A repeat that was held had won nothing before. Once the time is over, a piece that is answered at once ends it.
      const isEmpty = piece.isRepeat && piece.params.query.wait !== "0ms" && (pieces.isHeld || isCut(error));
      piece = isEmpty && pieces.isOver ? pieceOf(pieces) : { ...piece, isRepeat: true };
    }
    await pieces.pause(unanswered);
  }
}

/** A piece of a wait for a claim. */
function pieceOf(pieces: Pieces) {
  const params = { query: { wait: pieces.wait() }, header: { "Idempotency-Key": newKey() } };
  return { params, isRepeat: false };
}

/** Whether a proxy waited for the server in vain. */
function isCut(error: BlackboardError): boolean {
  return error instanceof UnexpectedAnswer && error.status === 504;
}

/** A claim that is held, until it ends. */
class Claim {
  readonly seq: number;
  readonly task: Task;
  isReleased = false;
  /** The refusal by which the loss was seen. */
  lost: Problem | undefined;
  #fence: number;
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #renewal: Promise<void> = Promise.resolve();

  constructor(
    readonly api: Api,
    readonly session: string,
    entry: Entry,
    readonly ttlMs: number,
    readonly outer: AbortSignal | undefined,
  ) {
    this.seq = entry.seq;
    this.#fence = entry.claim?.fence ?? 0;
    this.task = this.#taskOf(entry);
    outer?.addEventListener("abort", this.#abort);
    if (outer?.aborted) this.#abort();
    this.#renewAfter(ttlMs / 3);
  }

  /** Ends the renewals, and waits for one under way: it may have a new fence. */
  async settle(): Promise<void> {
    this.outer?.removeEventListener("abort", this.#abort);
    clearTimeout(this.#timer);
    await this.#renewal;
    clearTimeout(this.#timer);
  }

  /** Ends the claim as `done` or `failed`. */
  async finish(end: "done" | "failed", body: { result?: unknown } | { reason?: unknown }): Promise<void> {
    if (this.lost !== undefined) return;
    const params = { path: { session: this.session, seq: this.seq } };
    await this.#unlessLost(() =>
      this.api.PUT(`/v1/sessions/{session}/requests/{seq}/${end}`, { params, body: { fence: this.#fence, ...body } }),
    );
  }

  async release(): Promise<void> {
    if (this.isReleased || this.lost !== undefined) return;
    this.isReleased = true;
    await this.settle();
    const params = { path: { session: this.session, seq: this.seq }, query: this.#guard() };
    await this.#unlessLost(() => this.api.DELETE("/v1/sessions/{session}/requests/{seq}/claim", { params }));
  }

  #taskOf(entry: Entry): Task {
    const guard = () => this.#guard();
    return {
      seq: entry.seq,
      item: entry.item,
      entry,
      signal: this.#controller.signal,
      get guard() {
        return guard();
      },
      release: () => this.release(),
    };
  }

  #guard(): { claim: number; fence: number } {
    return { claim: this.seq, fence: this.#fence };
  }

  #abort = () => this.#controller.abort(this.outer?.reason);

  #renewAfter(ms: number): void {
    this.#timer = setTimeout(() => (this.#renewal = this.#renew()), Math.min(ms, TIMER_MS_MAX));
  }

  /** A claim that lapsed is won again, unless another agent has won it since. */
  async #renew(): Promise<void> {
    const params = { path: { session: this.session, seq: this.seq }, query: this.#guard() };
    const body = { ttl: duration(this.ttlMs) };
    let pauseMs = this.ttlMs / 3;
    try {
      await this.#unlessLost(async () => {
        const { data } = await this.api.PUT("/v1/sessions/{session}/requests/{seq}/claim", { params, body });
        this.#fence = data.claim.fence;
      });
    } catch {
      // Tried again while the work goes on; its end is told in any case, and fails by the same error.
      pauseMs = Math.min(pauseMs, AGAIN_MS_MAX);
    }
    if (this.lost === undefined && !this.isReleased) this.#renewAfter(pauseMs);
  }

  async #unlessLost(write: () => Promise<unknown>): Promise<void> {
    try {
      await write();
    } catch (error) {
      if (!Problem.is(error, ...LOST)) throw error;
      this.lost = error;
      this.#controller.abort(error);
    }
  }
}

/** Characters of a reason. */
const REASON_MAX = 2_000;

/** Returns an error's text, or another thrown value as it is, if it is JSON of the same size. */
function reasonOf(error: unknown): unknown {
  if (!(error instanceof Error)) {
    try {
      if (jsonText(error).length <= REASON_MAX) return error;
    } catch {
      // Its text is the reason.
    }
  }
  return String(error).slice(0, REASON_MAX).toWellFormed();
}
