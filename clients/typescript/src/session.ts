/**
 * A session by its name, with what is done with its requests and messages.
 */

import { followAttention } from "./attention.js";
import type { FollowOptions } from "./attention.js";
import type { Api } from "./client.js";
import { messagesOf } from "./messages.js";
import type { Messages } from "./messages.js";
import { work } from "./requests.js";
import type { Work, WorkOptions } from "./requests.js";
import type { Attention } from "./waits.js";

/** A moment: a date, RFC 3339, or the time from now as the server writes it, such as `10m`. */
export type Moment = Date | string;

export interface SubmitOptions {
  /** The requests that must be done before. */
  after?: readonly number[] | undefined;
  /** The number of attempts without success after which the request has failed; no limit by default. */
  attempts?: number | undefined;
  /** From -100 to 100: higher ones are claimed first; 0 by default. */
  priority?: number | undefined;
  /** The moment before which nobody can claim it. */
  notBefore?: Moment | undefined;
  /** The moment at which it fails, unless it has ended. */
  deadline?: Moment | undefined;
  /** Whether another agent must accept the result. */
  review?: boolean | undefined;
}

export interface Verdict {
  accept: boolean;
  /** The fence of the attempt, `in_review.fence` of the request. */
  fence?: number | undefined;
  reason?: unknown;
}

/** The requests of a session. */
export interface Requests {
  /** Appends a request and returns its seq. */
  submit(item: Record<string, unknown> | string, options?: SubmitOptions): Promise<number>;
  /**
   * Works on one request after another: done with what the function returns, a failed attempt if it throws. Ends by the
   * signal, or once there was no request for `waitMs`. Claims of the same agent that nobody has renewed for half a
   * `ttlMs` are released: an earlier run left them.
   */
  work(fn: Work<unknown>, options?: WorkOptions): Promise<void>;
  /** Cancels a request: at once if nobody has claimed it, else its worker is informed and it ends with the claim. */
  cancel(seq: number, reason?: unknown): Promise<void>;
  /** Accepts or rejects the result of a request that is in review. */
  verdict(seq: number, verdict: Verdict): Promise<void>;
  /** Makes a request that failed or was cancelled claimable again; without a new deadline it has none. */
  retry(seq: number, options?: { deadline?: Moment | undefined }): Promise<void>;
}

export interface Session {
  readonly name: string;
  readonly requests: Requests;
  /** Returns the messages to an agent. No request is made. */
  messages(agent: string): Messages;
  /**
   * Follows what waits for an agent, each time something new does, without end. A claimable request or an answer is in
   * one result, a message in each until it is acknowledged, a cancelled claim or a result to judge until it ends. That
   * such a thing goes away is no result.
   */
  followAttention(agent: string, options?: FollowOptions): AsyncGenerator<Attention, never>;
}

/** No request is made. */
export function sessionOf(api: Api, session: string, settleMs: number, agent: string | undefined): Session {
  const params = (seq: number) => ({ path: { session, seq } });
  return {
    name: session,
    messages: (agent) => messagesOf(api, session, agent),
    followAttention: (agent, options) => followAttention(api, session, agent, options),
    requests: {
      submit: async (item, { after, notBefore, deadline, ...plan } = {}) => {
        const query = { ...plan, after: after?.map(String), not_before: moment(notBefore), deadline: moment(deadline) };
        const { data } = await api.POST("/v1/sessions/{session}/requests", {
          params: { path: { session }, query: present(query) },
          body: item,
        });
        return data.entries?.[0]?.seq ?? 0;
      },
      work: (fn, options) => work(api, session, settleMs, agent, fn, options),
      cancel: async (seq, reason) => {
        const body = present({ reason });
        await api.PUT("/v1/sessions/{session}/requests/{seq}/cancelled", { params: params(seq), body });
      },
      verdict: async (seq, verdict) => {
        const body = { accept: verdict.accept, ...present(verdict) };
        await api.PUT("/v1/sessions/{session}/requests/{seq}/verdict", { params: params(seq), body });
      },
      retry: async (seq, { deadline } = {}) => {
        const body = present({ deadline: moment(deadline) });
        await api.POST("/v1/sessions/{session}/requests/{seq}/retry", { params: params(seq), body });
      },
    },
  };
}

function moment(given: Moment | undefined): string | undefined {
  return given instanceof Date ? given.toISOString() : given;
}

/** Returns the members that have a value. */
function present<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}
