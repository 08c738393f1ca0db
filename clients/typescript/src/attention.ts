/**
 * Attention that is followed: all that waits for an agent, each time something new does.
 *
 * After each result the cursor moves on, so that answers and claimable requests come once. What is left is looked at, and
 * only a change of its tag ends the wait that follows.
 */

import type { Api } from "./client.js";
import { NotModified, Problem } from "./errors.js";
import type { BlackboardError } from "./errors.js";
import { etagOf } from "./etag.js";
import { isRetryable, onceThere, Pieces, readAttention } from "./waits.js";
import type { Attention, AttentionQuery } from "./waits.js";

export interface FollowOptions extends AttentionQuery {
  /** Ends the iteration: `next()` throws its reason. */
  signal?: AbortSignal | undefined;
}

export async function* followAttention(
  api: Api,
  session: string,
  agent: string,
  { after = 0, signal, ...wanted }: FollowOptions = {},
): AsyncGenerator<Attention, never, void> {
  const pieces = new Pieces({ signal });
  let seen = new Set<string>();
  let isPaused = false;
  let isLooking = true;
  let tag: string | undefined;
  for (;;) {
    let unanswered: BlackboardError | undefined;
    let received: { data: Attention; response: Response } | undefined;
    try {
      received = await onceThere(api, session, pieces, () =>
        readAttention(
          api,
          session,
          agent,
          { ...wanted, after },
          pieces.init,
          isLooking ? undefined : pieces.wait(),
          tag,
        ),
      );
    } catch (error) {
      if (isRetryable(error)) unanswered = error;
      // There is no session yet.
      else if (!(error instanceof NotModified) && !Problem.is(error, "condition-not-met")) throw error;
    }
    if (received !== undefined) {
      const { data, response } = received;
      const standing = standingOf(data);
      const hasCome = [data.claimable, data.answers].some((list) => list !== undefined && list.count > 0);
      const isNew = hasCome || data.paused !== isPaused || standing.some((name) => !seen.has(name));
      seen = new Set(standing);
      isPaused = data.paused;
      isLooking = isNew;
      if (isNew) {
        yield data;
        after = data.next;
        tag = undefined;
        continue;
      }
      const former = tag;
      tag = etagOf(response);
      // A proxy may remove tags, or change them so that none matches.
      if (tag !== undefined && tag !== former) continue;
    }
    await pieces.pause(unanswered);
  }
}

/** What stays until it is acknowledged or ended. A request cancelled or judged again has another fence. */
function standingOf({ messages, cancels, reviews }: Attention): string[] {
  return [
    ...(messages?.newest ?? []).map(({ seq }) => `message ${seq}`),
    ...(cancels?.newest ?? []).map(({ seq, claim }) => `cancel ${seq} ${claim?.fence}`),
    ...(reviews?.newest ?? []).map(({ seq, in_review }) => `review ${seq} ${in_review?.fence}`),
  ];
}
