/**
 * Claims that an earlier run of the same agent has left: listed as a worker begins, and released after half a ttl.
 *
 * A run that was killed renews nothing any more. A second worker under the same name renews its claims more often.
 */

import type { Api } from "./client.js";
import { sleep } from "./time.js";
import type { Entry } from "./waits.js";

/** Entries of a page in which claims are looked for. */
const PAGE = 1_000;

/** Lists what the agent holds. What is not found, because the server is away, expires. */
export async function leftovers(
  api: Api,
  session: string,
  agent: string | undefined,
  signal: AbortSignal | undefined,
): Promise<Entry[]> {
  const held: Entry[] = [];
  const init = signal === undefined ? {} : { signal };
  try {
    for (let after = 0, more = agent !== undefined; more;) {
      const params = { path: { session }, query: { keys: [], limit: PAGE, after } };
      const { data } = await api.GET("/v1/sessions/{session}/requests", { params, ...init });
      held.push(...data.entries.filter(({ claim }) => claim?.agent === agent));
      ({ next: after, more } = data);
    }
  } catch {
    // The first claim waits for a server that is away, and reports any other reason.
  }
  return held;
}

/** Releases those that nobody has renewed for half a ttl, unless the signal ends the wait. */
export async function release(
  api: Api,
  session: string,
  held: readonly Entry[],
  ttlMs: number,
  signal: AbortSignal,
  log: (line: string, error: unknown) => void,
): Promise<void> {
  if (held.length > 0) await sleep(ttlMs / 2, signal).catch(() => undefined);
  for (const { seq, claim } of held) {
    if (signal.aborted) return;
    const path = { session, seq };
    try {
      const { data } = await api.GET("/v1/sessions/{session}/requests/{seq}", { params: { path } });
      const isRenewed = claim?.fence !== data.claim?.fence || claim?.expires_at !== data.claim?.expires_at;
      if (claim === undefined || isRenewed) continue;
      const query = { claim: seq, fence: claim.fence };
      await api.DELETE("/v1/sessions/{session}/requests/{seq}/claim", { params: { path, query } });
      log(`request ${seq}: attempt released`, "an earlier run of this agent had claimed it");
    } catch (error) {
      log(`request ${seq}: not released, its claim will expire`, error);
    }
  }
}
