/**
 * Messages to an agent: sent by others, read and acknowledged by the agent itself.
 */

import type { Api } from "./client.js";
import { Problem } from "./errors.js";
import type { Entry } from "./waits.js";

export interface SendOptions {
  /** The conversation that it belongs to. */
  thread?: string | undefined;
  /** The seq of the message that it replies to. */
  replyTo?: number | undefined;
}

/** The messages to an agent. */
export interface Messages {
  /** Sends a message, which waits for the agent until it is acknowledged, and returns its seq. */
  send(message: Record<string, unknown> | string, options?: SendOptions): Promise<number>;
  /** Reads the messages after a seq that the agent has not acknowledged, oldest first. */
  unacked(options?: { after?: number | undefined }): AsyncGenerator<Entry, void>;
  /** Acknowledges a message, so that it waits no longer. Only the first time counts. */
  ack(seq: number): Promise<void>;
}

const ROUTE = "/v1/sessions/{session}/agents/{agent}/messages";
const PAGE = 200;

/** No request is made. */
export function messagesOf(api: Api, session: string, agent: string): Messages {
  const path = { session, agent };
  return {
    send: async (message, { thread, replyTo } = {}) => {
      const body = {
        ...(typeof message === "string" ? { text: message } : message),
        ...(thread === undefined ? {} : { thread }),
        ...(replyTo === undefined ? {} : { reply_to: replyTo }),
      };
      const { data } = await api.POST(ROUTE, { params: { path }, body });
      return data.entries?.[0]?.seq ?? 0;
    },
    unacked: ({ after = 0 } = {}) => unacked(api, path, after),
    ack: async (seq) => {
      await api.PUT(`${ROUTE}/{seq}/ack`, { params: { path: { ...path, seq } } });
    },
  };
}

/** A session that does not exist has no messages. */
async function* unacked(
  api: Api,
  path: { session: string; agent: string },
  after: number,
): AsyncGenerator<Entry, void, void> {
  for (;;) {
    const query = { after, unacked: true, limit: PAGE };
    const page = await api.GET(ROUTE, { params: { path, query } }).catch((error: unknown) => {
      if (!Problem.is(error, "session-not-found")) throw error;
      return undefined;
    });
    yield* page?.data.entries ?? [];
    if (!page?.data.more) return;
    after = page.data.next;
  }
}
