// What people ask of an agent by the state (`agents/NAME/paused`, `agents/NAME/stopped`), and how far the agent obeys.
//
// The agent reads the state between two steps and says in its profile (`paused`, `stopped`) what it does.

import { numberOf } from "../json.js";

/**
 * What is asked of an agent, by a read of its value in the state (`{loading, data, error}`, as of `useResource`). A read with
 * `until=absent` is refused with the value. After any other failure, what was asked `before` stands.
 */
export function wantedOf({ loading, data, error }, before) {
  if (loading) return before;
  if (!error) return data ?? {};
  if (error.status === 404) return {};
  return error.current === undefined ? before : error.current ?? {};
}

/** A directive as asked for: `{request}` if it concerns one request only; undefined if it is not there. */
export function asked(value) {
  if (value === undefined || value === null) return undefined;
  return { request: typeof value === "object" ? numberOf(value.request) ?? value.request : undefined };
}

/**
 * How far one directive is: `{asked, obeyed, phase}`. `phase` is "none", "asked" (not obeyed yet), "obeyed", or "leaving"
 * (withdrawn, and the agent has not said that it goes on).
 */
export function directive(value, profile) {
  const wanted = asked(value);
  const obeyed = profile !== undefined && profile !== null && profile !== false;
  const phase = wanted ? (obeyed ? "obeyed" : "asked") : obeyed ? "leaving" : "none";
  return { asked: wanted, obeyed, phase };
}

/** The newest commit that set one directive of an agent: `{at, by, revision}`; undefined if none is loaded. */
export function askedAt(commits, agent, name) {
  const path = `agents/${segment(agent)}/${name}`;
  for (let i = commits.length - 1; i >= 0; i -= 1) {
    const { changes, at, agent: by, revision } = commits[i];
    if (changes.some((change) => ["state_put", "state_set"].includes(change.kind) && change.path === path)) return { at, by, revision };
  }
  return undefined;
}

/** A name as one segment of a state path. */
export function segment(name) {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
