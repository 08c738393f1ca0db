/**
 * Waits for what others write, as long polls one after another.
 *
 * Each poll is shorter than the patience of proxies. A wait survives restarts of the server, and a session that does
 * not exist yet is waited for.
 */

import type { Api } from "./client.js";
import { NotModified, Problem, RequestFailed } from "./errors.js";
import { jsonText } from "./json.js";
import { pathText } from "./names.js";
import type { StatePath } from "./names.js";
import type { components, paths } from "./schema.js";
import { Deadline, duration } from "./time.js";

/** The longest poll. The server allows 60 s, after which many proxies have given up. */
const POLL_MS = 30_000;

export type Entry = components["schemas"]["EntryBody"];
export type EntryPage = components["schemas"]["EntryPage"];

/** A log of the board, or an agent's memory. */
export type Log = "questions" | "requests" | "trajectories" | "screenshots" | { memory: string };

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

/** Once `limitMs` is over, all but `entries` throw the problem `condition-not-met`, with what there is as `current`. */
export interface Waits {
  /** Waits until a question is answered, skipped or expired. */
  answer(session: string, seq: number, options?: WaitOptions): Promise<Entry>;
  /** Waits until a request is done. Throws `RequestFailed` once its attempts have failed. */
  done(session: string, seq: number, options?: WaitOptions): Promise<Entry>;
  /** Waits until a path of the state exists, is absent, or has this value; returns the value. */
  state(
    session: string,
    path: StatePath,
    until: "exists" | "absent" | { equals: unknown },
    options?: WaitOptions,
  ): Promise<unknown>;
  /** Waits for entries after a cursor. The page is empty if none came within `limitMs`. */
  entries(session: string, log: Log, options?: EntriesOptions): Promise<EntryPage>;
}

export function waits(api: Api): Waits {
  return {
    answer: (session, seq, options) =>
      poll(options, async (wait, init) => {
        const params = { path: { session, seq }, query: { until: "answered" as const, wait: wait() } };
        return (await api.GET("/v1/sessions/{session}/questions/{seq}", { params, ...init })).data;
      }),
    done: (session, seq, options) => waitForEnd(api, session, seq, options),
    state: async (session, path, until, options) => {
      const condition = typeof until === "string" ? until : `equals:${jsonText(until.equals)}`;
      return poll(options, (wait, init) =>
        onceThere(api, session, wait, init, async () => {
          const query = { until: condition, wait: wait() };
          return (await readState(api, session, path, query, init)).data;
        }),
      );
    },
    entries: (session, log, options) => waitForEntries(api, session, log, options),
  };
}

/** Reads a value of the state. */
export function readState(api: Api, session: string, path: StatePath, query: StateQuery, init: Init) {
  const text = pathText(path);
  if (text === "") return api.GET("/v1/sessions/{session}/state", { params: { path: { session }, query }, ...init });
  return api.GET("/v1/sessions/{session}/state/{path}", { params: { path: { session, path: text }, query }, ...init });
}

interface StateQuery {
  until?: string;
  wait?: string;
}

/** The options of each call of a wait. */
interface Init {
  signal?: AbortSignal;
}

/** The time for the next poll. */
type Wait = () => string;

/** Returns the times of the polls of a wait, and the options of their calls. */
export function limits({ limitMs, signal }: WaitOptions): { deadline: Deadline; wait: Wait; init: Init } {
  const deadline = new Deadline(limitMs);
  const wait = () => duration(Math.min(deadline.leftMs, POLL_MS));
  return { deadline, wait, init: signal === undefined ? {} : { signal } };
}

/** Polls until the condition is met or the time is over. */
async function poll<T>(options: WaitOptions = {}, once: (wait: Wait, init: Init) => Promise<T>): Promise<T> {
  const { deadline, wait, init } = limits(options);
  for (;;) {
    const isLast = deadline.leftMs <= POLL_MS;
    try {
      return await once(wait, init);
    } catch (error) {
      if (isLast || !Problem.is(error, "condition-not-met")) throw error;
    }
  }
}

/** Reads something of a session, as soon as there is the session. */
export async function onceThere<T>(
  api: Api,
  session: string,
  wait: Wait,
  init: Init,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!Problem.is(error, "session-not-found")) throw error;
  }
  const params = { path: { session }, query: { until: "exists" as const, wait: wait() } };
  await api.GET("/v1/sessions/{session}", { params, ...init });
  return read();
}

/** A request can end in two ways, which no condition has in one; its tag changes in both. */
async function waitForEnd(api: Api, session: string, seq: number, options: WaitOptions = {}): Promise<Entry> {
  const route = "/v1/sessions/{session}/requests/{seq}";
  const { deadline, wait, init } = limits(options);
  const path = { session, seq };
  let read = await api.GET(route, { params: { path }, ...init });
  for (;;) {
    if (read.data.done !== undefined) return read.data;
    if (read.data.failed !== undefined) throw new RequestFailed(read.data);
    const tag = read.response.headers.get("ETag") ?? "";
    const isOver = deadline.leftMs === 0;
    // The last poll is for the server's refusal, with the request in it.
    const params = isOver
      ? { path, query: { until: "done" as const, wait: "0ms" } }
      : { path, query: { wait: wait() }, header: { "If-None-Match": tag } };
    read = await api.GET(route, { params, ...init }).catch((error: unknown) => {
      if (error instanceof NotModified) return read;
      throw error;
    });
  }
}

async function waitForEntries(
  api: Api,
  session: string,
  log: Log,
  { after = 0, query, ...options }: EntriesOptions = {},
): Promise<EntryPage> {
  const { deadline, wait, init } = limits(options);
  for (let next = after; ;) {
    const page = await poll(options, () =>
      onceThere(api, session, wait, init, () =>
        readLog(api, session, log, { ...query, after: next, wait: wait() }, init),
      ),
    );
    // A filter may have let none of the new entries through.
    if (page.entries.length > 0 || deadline.leftMs === 0) return page;
    next = page.next;
  }
}

async function readLog(api: Api, session: string, log: Log, query: object, init: Init): Promise<EntryPage> {
  if (typeof log === "object") {
    const params = { path: { session, agent: log.memory }, query };
    return (await api.GET("/v1/sessions/{session}/agents/{agent}/memory", { params, ...init })).data;
  }
  const params = { path: { session }, query };
  return (await api.GET(`/v1/sessions/{session}/${log}`, { params, ...init })).data;
}
