/**
 * Updates of a value in the state by any number of writers, none of them lost.
 */

import type { Api } from "./client.js";
import { Problem } from "./errors.js";
import { etagOf } from "./etag.js";
import { pathText } from "./names.js";
import type { StatePath } from "./names.js";
import { Deadline, duration, pauseMs, sleep } from "./time.js";
import { readState } from "./waits.js";

export interface UpdateOptions {
  /** The time after which the value goes away unless it is written again, in milliseconds; never by default. */
  ttlMs?: number | undefined;
  /** The limit of the whole update, in milliseconds; none by default. */
  limitMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface Updated<Value> {
  value: Value;
  revision: number;
  etag: string;
}

/** A value as it was read; `undefined` and no tag if there is none. */
interface Found {
  value: unknown;
  etag: string | undefined;
}

/** Updates a value. The function may be called several times. Numbers are JavaScript's, exact up to 2^53. */
export async function updateState<Value>(
  api: Api,
  session: string,
  path: StatePath,
  update: (value: Value | undefined) => Value | Promise<Value>,
  options: UpdateOptions = {},
): Promise<Updated<Value>> {
  const deadline = new Deadline(options.limitMs);
  const init = options.signal === undefined ? {} : { signal: options.signal };
  const query = options.ttlMs === undefined ? {} : { ttl: duration(options.ttlMs) };
  let found = await read(api, session, path, init);
  for (let tries = 1; ; tries += 1) {
    const value = await update(found.value as Value | undefined);
    const header = found.etag === undefined ? { "If-None-Match": "*" as const } : { "If-Match": found.etag };
    try {
      const { data } = await write(api, session, path, value, { query, header }, init);
      return { value, revision: data.revision, etag: data.etag ?? "" };
    } catch (error) {
      if (!Problem.is(error, "precondition-failed") || deadline.leftMs === 0) throw error;
      // The value is still the one that was read: its tag was changed on the way, and would be again.
      if (found.etag !== undefined && error.etag === found.etag) throw error;
      found = present(error) ?? (await read(api, session, path, init));
    }
    await sleep(pauseMs(Math.min(tries, 4)) / 10, options.signal);
  }
}

async function read(api: Api, session: string, path: StatePath, init: { signal?: AbortSignal }): Promise<Found> {
  try {
    const { data, response } = await readState(api, session, path, {}, init);
    return { value: data, etag: etagOf(response) };
  } catch (error) {
    if (Problem.is(error, "path-not-found", "session-not-found")) return { value: undefined, etag: undefined };
    throw error;
  }
}

function write(
  api: Api,
  session: string,
  path: StatePath,
  body: unknown,
  params: { query: { ttl?: string }; header: Record<string, string> },
  init: { signal?: AbortSignal },
) {
  const text = pathText(path);
  if (text === "") {
    const whole = body as Record<string, unknown>;
    return api.PUT("/v1/sessions/{session}/state", { params: { path: { session }, ...params }, body: whole, ...init });
  }
  const place = { session, path: text };
  return api.PUT("/v1/sessions/{session}/state/{path}", { params: { path: place, ...params }, body, ...init });
}

/** The present value, which a refusal has unless it is large or absent. */
function present({ body, current, etag }: Problem): Found | undefined {
  return "current" in body && etag !== undefined ? { value: current, etag } : undefined;
}
