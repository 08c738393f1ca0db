/**
 * Claims that are held while work goes on: renewed, watched, and ended once.
 *
 * A renewal keeps the claim, and a held read of the request shows at once that it was cancelled or lost.
 */

import type { Api } from "./client.js";
import { NotModified, Problem, RequestCancelled } from "./errors.js";
import type { BlackboardError } from "./errors.js";
import { etagOf } from "./etag.js";
import { jsonText } from "./json.js";
import type { components } from "./schema.js";
import { duration, TIMER_MS_MAX } from "./time.js";
import { isRetryable, Pieces } from "./waits.js";
import type { Entry } from "./waits.js";

/** The end of an attempt without success. */
export type PastAttempt = components["schemas"]["AttemptBody"];

/** A claimed request. The first of `finish`, `fail` and `release` ends the claim, and the others do nothing then. */
export interface Task {
  readonly seq: number;
  readonly item: Record<string, unknown>;
  readonly entry: Entry;
  /** The last attempts of this request that had no success, oldest first. */
  readonly pastAttempts: readonly PastAttempt[];
  /** Whether the request was cancelled: a result still counts, and all else ends the request. */
  readonly cancelled: boolean;
  /** Aborted once the request was cancelled, the claim is lost, or by the signal of the options. */
  readonly signal: AbortSignal;
  /** For the query of writes: they are rejected once the claim is lost. */
  readonly guard: { claim: number; fence: number };
  /** Ends the request with a result. */
  finish(result?: unknown): Promise<void>;
  /** Ends the attempt without success. The request is claimable again, after `retryInMs`, while it has attempts. */
  fail(reason?: unknown, options?: { retryInMs?: number | undefined }): Promise<void>;
  /** Returns the request for another agent. No attempt is counted. */
  release(): Promise<void>;
}

/** How the worker itself has ended a claim. */
export type End = { end: "done"; result: unknown } | { end: "failed"; error: unknown } | { end: "released" };

/** The longest pause after a renewal that failed. */
const AGAIN_MS_MAX = 1_000;

/** Codes of problems that mean: another agent holds the claim, or nobody. */
const LOST = ["stale-fence", "already-claimed", "illegal-transition", "entry-not-found", "session-not-found"] as const;

/** A claim that is held, until it ends. */
export class Claim {
  readonly seq: number;
  readonly task: Task;
  ended: End | undefined;
  /** The problem by which the loss was seen. */
  lost: Problem | undefined;
  cancelled: RequestCancelled | undefined;
  readonly #params: { path: { session: string; seq: number } };
  #fence: number;
  #tag: string;
  readonly #controller = new AbortController();
  #holding = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #renewal: Promise<void> | undefined;
  #ending: Promise<unknown> = Promise.resolve();

  constructor(
    readonly api: Api,
    session: string,
    entry: Entry & { etag: string },
    readonly ttlMs: number,
    readonly outer: AbortSignal | undefined,
  ) {
    this.seq = entry.seq;
    this.#params = { path: { session, seq: entry.seq } };
    this.#fence = entry.claim?.fence ?? 0;
    this.#tag = entry.etag;
    this.task = this.#taskOf(entry);
    this.#hold();
  }

  get isOver(): boolean {
    return this.ended !== undefined || this.lost !== undefined;
  }

  /** Stops holding the claim. Waits for a renewal under way, because it may have a new fence. */
  async settle(): Promise<void> {
    this.outer?.removeEventListener("abort", this.#abort);
    this.#holding.abort();
    clearTimeout(this.#timer);
    await this.#renewal;
  }

  finish(result?: unknown): Promise<void> {
    const body = result === undefined ? {} : { result };
    return this.#end({ end: "done", result }, () =>
      this.api.PUT("/v1/sessions/{session}/requests/{seq}/done", {
        params: this.#params,
        body: { fence: this.#fence, ...body },
      }),
    );
  }

  fail(error?: unknown, { retryInMs }: { retryInMs?: number | undefined } = {}): Promise<void> {
    const body = {
      ...(error === undefined ? {} : { reason: reasonOf(error) }),
      ...(retryInMs ? { retry_in: duration(retryInMs) } : {}),
    };
    return this.#end({ end: "failed", error }, () =>
      this.api.PUT("/v1/sessions/{session}/requests/{seq}/failed", {
        params: this.#params,
        body: { fence: this.#fence, ...body },
      }),
    );
  }

  release(): Promise<void> {
    return this.#end({ end: "released" }, () => {
      const params = { ...this.#params, query: this.#guard() };
      return this.api.DELETE("/v1/sessions/{session}/requests/{seq}/claim", { params });
    });
  }

  /** Ends the claim, after an end under way: if that has failed, the claim is held still. */
  #end(end: End, write: () => Promise<unknown>): Promise<void> {
    const written = this.#ending.then(async () => {
      if (this.isOver) return;
      await this.settle();
      if (this.isOver) return;
      try {
        await this.#unlessLost(write);
      } catch (error) {
        this.#hold();
        throw error;
      }
      if (!this.isOver) this.ended = end;
    });
    this.#ending = written.catch(() => undefined);
    return written;
  }

  #taskOf(entry: Entry): Task {
    const guard = () => this.#guard();
    const isCancelled = () => this.cancelled !== undefined;
    return {
      seq: entry.seq,
      item: entry.item,
      entry,
      pastAttempts: entry.past_attempts ?? [],
      signal: this.#controller.signal,
      get cancelled() {
        return isCancelled();
      },
      get guard() {
        return guard();
      },
      finish: (result) => this.finish(result),
      fail: (reason, options) => this.fail(reason, options),
      release: () => this.release(),
    };
  }

  #guard(): { claim: number; fence: number } {
    return { claim: this.seq, fence: this.#fence };
  }

  #abort = () => this.#controller.abort(this.outer?.reason);

  /** Renews the claim and watches the request, until it is settled. */
  #hold(): void {
    this.outer?.addEventListener("abort", this.#abort);
    if (this.outer?.aborted) this.#abort();
    this.#holding = new AbortController();
    this.#renewAfter(this.ttlMs / 3);
    void this.#watch(this.#holding.signal);
  }

  #renewAfter(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#renewNow, Math.min(ms, TIMER_MS_MAX));
  }

  /** One renewal at a time, each with the fence of the one before it. */
  #renewNow = (): void => {
    this.#renewal ??= this.#renew().then((ms) => {
      this.#renewal = undefined;
      if (this.lost === undefined && !this.#holding.signal.aborted) this.#renewAfter(ms);
    });
  };

  /** Returns the time until the next one. A claim that expired is won again, unless another agent has won it since. */
  async #renew(): Promise<number> {
    const params = { ...this.#params, query: this.#guard() };
    const body = { ttl: duration(this.ttlMs) };
    try {
      await this.#unlessLost(async () => {
        const { data } = await this.api.PUT("/v1/sessions/{session}/requests/{seq}/claim", { params, body });
        this.#fence = data.claim.fence;
      });
      return this.ttlMs / 3;
    } catch {
      // Tried again while the work goes on; its end is reported in any case, and fails by the same error.
      return Math.min(this.ttlMs / 3, AGAIN_MS_MAX);
    }
  }

  /** Waits for changes of the request. Without the right to read it, only renewals show a loss. */
  async #watch(signal: AbortSignal): Promise<void> {
    const pieces = new Pieces({ signal });
    while (!signal.aborted) {
      let unanswered: BlackboardError | undefined;
      try {
        await this.#read(pieces);
      } catch (error) {
        if (Problem.is(error, ...LOST)) this.#renewNow();
        if (isRetryable(error)) unanswered = error;
        else if (!(error instanceof NotModified)) return;
      }
      await pieces.pause(unanswered).catch(() => undefined);
    }
  }

  /** Reads the request once it has changed. */
  async #read(pieces: Pieces): Promise<void> {
    const known = { query: { wait: pieces.wait() }, header: { "If-None-Match": this.#tag } };
    const params = { ...this.#params, ...known };
    const { data, response } = await this.api.GET("/v1/sessions/{session}/requests/{seq}", { params, ...pieces.init });
    this.#tag = etagOf(response) ?? this.#tag;
    this.#see(data);
  }

  #see(entry: Entry): void {
    if (this.cancelled === undefined && (entry.cancel ?? entry.cancelled) !== undefined) {
      this.cancelled = new RequestCancelled(entry);
      this.#controller.abort(this.cancelled);
    }
    // The answer says how it was lost, or wins it again.
    if (entry.claim?.fence !== this.#fence) this.#renewNow();
  }

  async #unlessLost(write: () => Promise<unknown>): Promise<void> {
    try {
      await write();
    } catch (error) {
      if (!Problem.is(error, ...LOST)) throw error;
      this.lost = error;
      this.#holding.abort();
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
