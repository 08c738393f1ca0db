/**
 * Waits for what others write, as long polls one after another.
 *
 * Each piece of a wait is shorter than the patience of most proxies. A piece that is cut all the same is asked for
 * again until the caller's own limit, also while the server restarts or the session does not exist yet.
 */

import type { Api } from "./client.js";
import { BlackboardError, Problem, RequestCancelled, RequestFailed, TimeoutError } from "./errors.js";
import type { Seen } from "./errors.js";
import { jsonText } from "./json.js";
import { pathText } from "./names.js";
import type { StatePath } from "./names.js";
import type { components, paths } from "./schema.js";
import { Deadline, duration, pauseMs, sleep } from "./time.js";

/** The longest piece of a wait. The server allows 60 s, but proxies cut a request that has no answer after 30 s. */
const PIECE_MS = 25_000;

/** The time after which a piece counts as held by the server. Others ended for another reason than their time. */
const HELD_MS = 1_000;

export type Entry = components["schemas"]["EntryBody"];
export type EntryPage = components["schemas"]["EntryPage"];

/** All that waits for an agent. A list that `include` does not name is absent. */
export type Attention = components["schemas"]["AttentionBody"];

/** A log of the board, an agent's memory, or the messages to an agent. */
export type Log = "questions" | "requests" | "trajectories" | "screenshots" | { memory: string } | { messages: string };

/** The filters of a log's page. */
type Filters = Omit<
  NonNullable<paths["/v1/sessions/{session}/trajectories"]["get"]["parameters"]["query"]>,
  "wait" | "after" | "before" | "order" | "latest" | "at"
>;

export interface WaitOptions {
  /** The longest time to wait, in milliseconds; no limit by default. */
  limitMs?: number | undefined;
  /** Ends the wait: its reason is thrown. */
  signal?: AbortSignal | undefined;
}

export interface EntriesOptions extends WaitOptions {
  /** The last seq that was read, a page's `next`; 0 by default. */
  after?: number | undefined;
  /** Filters, as of the log's route. */
  query?: Filters | undefined;
}

/** What may wait for an agent. */
export interface AttentionQuery {
  /** The revision, `next` of another attention, after which claimable requests and answers must have come; 0 by default. */
  after?: number | undefined;
  /** Members that a request's item has, compared by value. */
  match?: Record<string, unknown> | undefined;
  /** The lists that are wanted; all by default. */
  include?: readonly (keyof Omit<Attention, "paused" | "next">)[] | undefined;
}

/**
 * Once `limitMs` is over, all throw `TimeoutError`, with what they have seen last as `current`; `entries` and `attention`
 * return an empty page or lists, unless their last piece was not answered.
 */
export interface Waits {
  /** Waits until a question is answered, skipped or expired. */
  answer(session: string, seq: number, options?: WaitOptions): Promise<Entry>;
  /** Waits until a request is done, has failed or was cancelled. */
  ended(session: string, seq: number, options?: WaitOptions): Promise<Entry>;
  /** Waits until a request is done. Throws `RequestFailed` or `RequestCancelled` if it ends otherwise. */
  done(session: string, seq: number, options?: WaitOptions): Promise<Entry>;
  /**
   * Waits until a request is cancelled. Throws `RequestFailed` if it fails, and the problem `condition-not-met` if it
   * is done.
   */
  cancelled(session: string, seq: number, options?: WaitOptions): Promise<Entry>;
  /** Waits until a path of the state exists, is absent, or has this value; returns the value. */
  state(
    session: string,
    path: StatePath,
    until: "exists" | "absent" | { equals: unknown },
    options?: WaitOptions,
  ): Promise<unknown>;
  /** Waits for entries after a cursor. The page is empty if none came within `limitMs`. */
  entries(session: string, log: Log, options?: EntriesOptions): Promise<EntryPage>;
  /** Waits until something waits for an agent. All lists are empty if nothing came within `limitMs`. */
  attention(session: string, agent: string, options?: AttentionQuery & WaitOptions): Promise<Attention>;
}

export function waits(api: Api): Waits {
  return {
    answer: (session, seq, options) =>
      poll(options, async (pieces) => {
        const params = { path: { session, seq }, query: { until: "answered" as const, wait: pieces.wait() } };
        return { found: (await api.GET("/v1/sessions/{session}/questions/{seq}", { params, ...pieces.init })).data };
      }),
    ended: (session, seq, options) => waitForEnd(api, session, seq, options),
    done: async (session, seq, options) => {
      const ended = await waitForEnd(api, session, seq, options);
      if (ended.cancelled !== undefined) throw new RequestCancelled(ended);
      if (ended.failed !== undefined) throw new RequestFailed(ended);
      return ended;
    },
    cancelled: async (session, seq, options) => {
      const ended = await waitForEnd(api, session, seq, options);
      if (ended.cancelled !== undefined) return ended;
      if (ended.failed !== undefined) throw new RequestFailed(ended);
      // A done one is never cancelled; the server's problem says so.
      const params = { path: { session, seq }, query: { until: "cancelled" as const } };
      return (await api.GET("/v1/sessions/{session}/requests/{seq}", { params })).data;
    },
    state: async (session, path, until, options) => {
      const condition = typeof until === "string" ? until : `equals:${jsonText(until.equals)}`;
      return poll(options, (pieces) =>
        onceThere(api, session, pieces, async () => {
          const query = { until: condition, wait: pieces.wait() };
          return { found: (await readState(api, session, path, query, pieces.init)).data };
        }),
      );
    },
    entries: (session, log, options) => waitForEntries(api, session, log, options),
    attention: (session, agent, { after, match, include, ...options } = {}) =>
      poll(options, async (pieces) => {
        const { data } = await onceThere(api, session, pieces, () =>
          readAttention(api, session, agent, { after, match, include }, pieces.init, pieces.wait()),
        );
        const lists = [data.messages, data.claimable, data.answers, data.cancels, data.reviews];
        const isEmpty = lists.every((list) => list === undefined || list.count === 0);
        return isEmpty && !pieces.isOver ? undefined : { found: data };
      }),
  };
}

/** Reads a value of the state. */
export function readState(api: Api, session: string, path: StatePath, query: StateQuery, init: Init) {
  const text = pathText(path);
  if (text === "") return api.GET("/v1/sessions/{session}/state", { params: { path: { session }, query }, ...init });
  return api.GET("/v1/sessions/{session}/state/{path}", { params: { path: { session, path: text }, query }, ...init });
}

/** Reads what waits for an agent; with `wait`, as soon as something does, and has another tag. */
export function readAttention(
  api: Api,
  session: string,
  agent: string,
  { after = 0, match, include }: AttentionQuery,
  init: Init,
  wait?: string,
  tag?: string,
) {
  const query = {
    after,
    ...(wait === undefined ? {} : { wait }),
    ...(match === undefined ? {} : { match: jsonText(match) }),
    ...(include === undefined ? {} : { include: [...include] }),
  };
  const header = tag === undefined ? {} : { "If-None-Match": tag };
  const params = { path: { session, agent }, query, header };
  return api.GET("/v1/sessions/{session}/agents/{agent}/attention", { params, ...init });
}

interface StateQuery {
  until?: string;
  wait?: string;
}

/** The options of a call. */
interface Init {
  signal?: AbortSignal;
  isPiece?: boolean;
}

/** The time of a wait, and its pieces one after another. */
export class Pieces {
  /** The options of each piece's calls. */
  readonly init: Init;
  /** What there was instead of what is waited for. */
  seen: Seen = {};
  readonly #deadline: Deadline;
  #begun = performance.now();
  #hasty = 0;

  constructor({ limitMs, signal }: WaitOptions) {
    this.#deadline = new Deadline(limitMs);
    this.init = { isPiece: true, ...(signal === undefined ? {} : { signal }) };
  }

  get isOver(): boolean {
    return this.#deadline.leftMs === 0;
  }

  /** Whether the piece has lasted so long that the server must have held it. */
  get isHeld(): boolean {
    return performance.now() - this.#begun >= HELD_MS;
  }

  /** The time for the next piece. */
  readonly wait = (): string => duration(Math.min(this.#deadline.leftMs, PIECE_MS));

  /** Ends a piece without a result. The pause grows while pieces end at once, as those of a server that stops. */
  async pause(error?: BlackboardError): Promise<void> {
    this.#hasty = this.isHeld ? 1 : this.#hasty + 1;
    const pause = pauseMs(this.#hasty) + (error?.retryAfterMs ?? 0);
    await sleep(this.isOver ? pause : Math.min(pause, this.#deadline.leftMs), this.init.signal);
    this.#begun = performance.now();
  }
}

/** Asks in pieces until a piece has found what is waited for, or the time is over. */
async function poll<T>(
  options: WaitOptions = {},
  once: (pieces: Pieces) => Promise<{ found: T } | undefined>,
): Promise<T> {
  const pieces = new Pieces(options);
  for (;;) {
    let unanswered: BlackboardError | undefined;
    try {
      const piece = await once(pieces);
      if (piece !== undefined) return piece.found;
    } catch (error) {
      // With `why`, the condition can come true no more.
      if (Problem.is(error, "condition-not-met") && !("why" in error.body)) pieces.seen = error;
      else if (isRetryable(error)) unanswered = error;
      else throw error;
    }
    if (pieces.isOver) throw new TimeoutError(pieces.seen, unanswered);
    await pieces.pause(unanswered);
  }
}

/** Whether a proxy or the connection cut a piece, or the server was busy, so that the wait goes on. */
export function isRetryable(error: unknown): error is BlackboardError {
  return error instanceof BlackboardError && error.retryable;
}

/** Reads something of a session, as soon as there is the session. */
export async function onceThere<T>(api: Api, session: string, pieces: Pieces, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!Problem.is(error, "session-not-found")) throw error;
  }
  const params = { path: { session }, query: { until: "exists" as const, wait: pieces.wait() } };
  await api.GET("/v1/sessions/{session}", { params, ...pieces.init });
  return read();
}

/** Waits until a request has ended. A first read shows what there is, if no wait is answered. */
function waitForEnd(api: Api, session: string, seq: number, options?: WaitOptions): Promise<Entry> {
  const path = { session, seq };
  return poll(options, async (pieces) => {
    const read = (query: { until?: "ended"; wait?: string }) =>
      api.GET("/v1/sessions/{session}/requests/{seq}", { params: { path, query }, ...pieces.init });
    if (pieces.seen.current === undefined) {
      const { data, response } = await read({});
      if ((data.done ?? data.failed ?? data.cancelled) !== undefined) return { found: data };
      pieces.seen = { current: data, revision: Number(response.headers.get("Blackboard-Revision")) };
    }
    return { found: (await read({ until: "ended", wait: pieces.wait() })).data };
  });
}

async function waitForEntries(
  api: Api,
  session: string,
  log: Log,
  { after = 0, query, ...options }: EntriesOptions = {},
): Promise<EntryPage> {
  let next = after;
  return poll(options, async (pieces) => {
    for (;;) {
      const page = await onceThere(api, session, pieces, () =>
        readLog(api, session, log, { ...query, after: next, wait: pieces.wait() }, pieces.init),
      );
      if (page.entries.length > 0 || pieces.isOver) return { found: page };
      // A filter may have let none of the new entries through.
      if (page.next === next) return undefined;
      next = page.next;
    }
  });
}

async function readLog(api: Api, session: string, log: Log, query: object, init: Init): Promise<EntryPage> {
  if (typeof log === "object") {
    const [kind, agent] = "memory" in log ? (["memory", log.memory] as const) : (["messages", log.messages] as const);
    const params = { path: { session, agent }, query };
    return (await api.GET(`/v1/sessions/{session}/agents/{agent}/${kind}`, { params, ...init })).data;
  }
  const params = { path: { session }, query };
  return (await api.GET(`/v1/sessions/{session}/${log}`, { params, ...init })).data;
}
