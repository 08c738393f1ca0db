// The way of an agent through its statuses: the last transitions, from the audit, then live from the session's commits.

import { board, get } from "../api.js";
import { signal, useEffect, useMemo } from "../dom.js";

/** The transitions that are shown. */
export const SHOWN_MAX = 12;

/** The commits of the audit that are looked through for them. */
const LOOKED_THROUGH = 1000;

/** The last transitions of an agent, newest first, as `{revision, at, by, from, to}`. */
export function useTransitions(session, agent, feed) {
  const found = useMemo(() => signal({ list: [], loading: true }), [session, agent]);
  useEffect(() => {
    const aborter = new AbortController();
    const add = (commits) => {
      const { list, loading } = found.peek();
      const fresh = loading ? [] : transitions(putsOf(commits, agent), list[0]);
      if (fresh.length > 0) found.value = { list: [...fresh, ...list].slice(0, SHOWN_MAX), loading: false };
    };
    const load = () => read(session, agent, aborter.signal).then(
      (list) => {
        found.value = { list, loading: false };
        // What came while the audit was read.
        add(feed.commits);
      },
      (error) => aborter.signal.aborted || (found.value = { list: [], loading: false, error }),
    );
    load();
    const ends = [
      feed.loading.subscribe(() => add(feed.commits)),
      feed.listen((commits) => {
        if (commits.length === 0 || commits.some((commit) => commit.changes.some((change) => change.kind === "restored"))) load();
        else add(commits);
      }),
    ];
    return () => {
      aborter.abort();
      for (const end of ends) end();
    };
  }, [found, feed]);
  return found.value;
}

/** The changes of an agent's profile in commits, as `{revision, at, by, status}`. */
export function putsOf(commits, agent) {
  return commits.flatMap(({ revision, at, agent: by, changes }) =>
    changes
      .filter((change) => change.kind === "agent_put" && change.agent === agent)
      .map((change) => ({ revision, at, by, status: change.value?.status })),
  );
}

/** Of ascending changes of a profile those that changed the status, newest first. `last` is the transition before them. */
export function transitions(puts, last) {
  const found = [];
  let { to: from, revision = 0 } = last ?? {};
  for (const put of puts) {
    if (put.status === undefined || put.status === from || put.revision <= revision) continue;
    found.unshift({ revision: put.revision, at: put.at, by: put.by, from, to: put.status });
    from = put.status;
  }
  return found;
}

async function read(session, agent, aborted) {
  const query = { kind: "agent_put", order: "desc", limit: LOOKED_THROUGH };
  const { body } = await get(board(session, "audit"), { query, signal: aborted });
  const commits = body.commits
    .filter(({ changes }) => changes.some((change) => change.kind === "agent_put" && change.agent === agent))
    .slice(0, 2 * SHOWN_MAX)
    .reverse();
  const puts = await Promise.all(commits.map(async ({ revision, at, agent: by }) => ({ revision, at, by, status: await statusAt(session, agent, revision, aborted) })));
  return transitions(puts).slice(0, SHOWN_MAX);
}

/** The status of an agent at a revision; undefined where the revision is not kept. */
async function statusAt(session, agent, revision, aborted) {
  try {
    return (await get(board(session, "agents", agent), { query: { at: revision }, signal: aborted })).body.status;
  } catch (error) {
    if (error.status === 404 || error.status === 410) return undefined;
    throw error;
  }
}
