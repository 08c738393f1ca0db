// A session's past without a browser: marks and film on the slider, comparisons of two boards, and the history of a path.

import { numberOf } from "./json.js";

/** The four logs of every board. */
export const LOGS = ["questions", "requests", "trajectories", "screenshots"];

/** The most values of a state document that are compared one by one. */
export const LEAVES_MAX = 5000;

/** Splits `session@revision`, where the session and the revision may be missing. */
export function pointOf(text, session) {
  const at = text.lastIndexOf("@");
  if (at < 0) return { session, at: text || undefined };
  return { session: text.slice(0, at) || session, at: text.slice(at + 1) || undefined };
}

/** The place of a revision on the slider, 0 to 1. */
export function placeOf(revision, oldest, head) {
  return head <= oldest ? 1 : Math.min(1, Math.max(0, (revision - oldest) / (head - oldest)));
}

/** Up to `most` numbers spread evenly over 1 to `last`, both included. */
export function spread(last, most) {
  if (last <= most) return Array.from({ length: last }, (_, i) => i + 1);
  const step = (last - 1) / (most - 1);
  return [...new Set(Array.from({ length: most }, (_, i) => Math.round(1 + i * step)))];
}

/** For each of `slots` equal parts of the slider the entry nearest to its middle, or undefined. */
export function film(entries, oldest, head, slots) {
  const chosen = new Array(slots).fill(undefined);
  const distance = (entry, slot) => Math.abs(placeOf(entry.revision, oldest, head) * slots - slot - 0.5);
  for (const entry of entries) {
    if (entry.revision < oldest || entry.revision > head) continue;
    const slot = Math.min(slots - 1, Math.floor(placeOf(entry.revision, oldest, head) * slots));
    if (!chosen[slot] || distance(entry, slot) < distance(chosen[slot], slot)) chosen[slot] = entry;
  }
  return chosen;
}

/** Marks in at most `buckets` places: `{place, kind, marks}`; a failure shows before a restore, and that before a checkpoint. */
export function clustered(marks, oldest, head, buckets) {
  const found = new Map();
  for (const mark of marks) {
    if (mark.revision < oldest || mark.revision > head) continue;
    const lane = mark.kind === "checkpoint" ? "checkpoint" : "event";
    const key = `${lane} ${Math.round(placeOf(mark.revision, oldest, head) * buckets)}`;
    const cluster = found.get(key) ?? { place: placeOf(mark.revision, oldest, head), kind: mark.kind, marks: [] };
    if (mark.kind === "failure") cluster.kind = "failure";
    cluster.marks.push(mark);
    found.set(key, cluster);
  }
  return [...found.values()];
}

/** The marks that a commit gives, from the events or the audit. */
export function marksOf(commit) {
  const { revision, at, agent } = commit;
  const found = [];
  const add = (kind, text) => found.push({ revision, at, agent, kind, text });
  for (const change of commit.changes) {
    if (change.kind === "failed") add("failure", `request ${change.request} failed`);
    else if (change.kind === "claim_expired") add("failure", `the claim on request ${change.request} lapsed`);
    else if (change.kind === "deadline_passed") add("failure", `the deadline of request ${change.request} passed`);
    else if (change.kind === "restored") add("restore", `restored to revision ${change.to ?? ""}`.trim());
    else if (change.kind === "agent_put" && isBad(change.value?.status)) add("failure", `${change.agent}: ${change.value.status}`);
    else if (change.kind === "appended" && change.log === "trajectories") {
      const bad = (change.entries ?? []).find((entry) => isBad(statusOf(entry.item)));
      if (bad) add("failure", `step ${bad.seq}: ${statusOf(bad.item)}`);
    }
  }
  return found;
}

function statusOf(item) {
  return item?.status ?? item?.Status;
}

function isBad(status) {
  return typeof status === "string" && /^(fail|error)$/i.test(status);
}

/** The values at the ends of a JSON document by path, at most `LEAVES_MAX`: a map from a path to a JSON text. */
export function leaves(value, most = LEAVES_MAX) {
  const found = new Map();
  const walk = (one, path) => {
    if (found.size >= most) return;
    const isObject = one !== null && typeof one === "object" && !Array.isArray(one) && numberOf(one) === undefined && Object.keys(one).length > 0;
    if (!isObject) return void found.set(path, JSON.stringify(one));
    for (const [key, inner] of Object.entries(one)) walk(inner, path === "" ? escaped(key) : `${path}/${escaped(key)}`);
  };
  if (value !== null && typeof value === "object" && Object.keys(value).length === 0) return found;
  walk(value, "");
  return found;
}

function escaped(key) {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Compares two maps: rows `{key, left, right, same}` in the order of the left one, then what only the right one has. */
export function compared(left, right, isSame = (a, b) => a === b) {
  const rows = [];
  for (const [key, value] of left) {
    rows.push({ key, left: value, right: right.get(key), same: right.has(key) && isSame(value, right.get(key)) });
  }
  for (const [key, value] of right) if (!left.has(key)) rows.push({ key, left: undefined, right: value, same: false });
  return rows;
}

/** Compares two pages of a log by seq. */
export function comparedLogs(left, right) {
  const bySeq = (page) => new Map(page.map((entry) => [entry.seq, entry]));
  const text = (entry) => JSON.stringify([entry.item, entry.image?.sha256, entry.claim?.agent, entry.done, entry.in_review, entry.failed, entry.cancelled, entry.cancel, entry.not_before, entry.blocked_by?.length > 0]);
  return compared(bySeq(left), bySeq(right), (a, b) => text(a) === text(b)).sort((a, b) => b.key - a.key);
}

/** The log and the number of an entry by its path, `{log, seq}`; undefined if it is no entry's. */
export function entryAt(path) {
  const entry = /^(questions|requests|trajectories|screenshots|agents\/.+\/(?:memory|messages))\/(\d+)$/s.exec(path);
  return entry ? { log: entry[1], seq: Number(entry[2]) } : undefined;
}

/** How the history of a path is found: `{on, matches(change)}`, or undefined where the path is none. */
export function historyOf(path) {
  const clean = path.replace(/^\/+|\/+$/g, "");
  if (clean === "state") return { on: "state", matches: () => true };
  if (clean.startsWith("state/")) return { on: clean, matches: () => true };
  const entry = entryAt(clean);
  if (entry) return { on: entry.log, matches: (change) => concerns(change, entry.log, entry.seq) };
  if (/^agents\/[^/]+$/.test(clean)) return { on: clean, matches: (change) => change.kind.startsWith("agent_") || change.kind === "restored" };
  return undefined;
}

/** True if a change is about one entry of a log. */
export function concerns(change, log, seq) {
  if (change.kind === "restored") return true;
  const among = (ranges) => ranges.some(([first, last]) => first <= seq && seq <= last);
  if (change.requests) return log === "requests" && among(change.requests);
  if (change.request) return log === "requests" && change.request === seq;
  if (change.kind === "question_expired") return log === "questions" && change.question === seq;
  if (change.kind === "planned" || change.kind === "awaited") return change.first <= seq && seq <= change.last;
  if (change.kind === "cleared") return change.log === undefined || change.log === log;
  if (change.log !== log) return false;
  if (change.entries) return change.entries.some((entry) => entry.seq === seq);
  if (change.ranges) return among(change.ranges);
  if (change.first !== undefined) return change.first <= seq && seq < change.first + (change.count ?? 1);
  return change.seq === seq;
}

/** A diff's page as rows `{path, kind, before, after, image, entry}` in one list; `entry` has the state of a request. */
export function differences(body) {
  const content = (one) => one.item ?? one.value;
  const entry = (one) => (one.path.startsWith("requests/") ? one : undefined);
  const rows = [
    ...body.added.map((one) => ({ path: one.path, kind: "added", after: content(one), image: one.image, entry: entry(one) })),
    ...body.changed.map((one) => ({ path: one.path, kind: "changed", before: one.before, after: one.after, image: one.image, entry: entry(one) })),
    ...body.removed.map((one) => ({ path: one.path, kind: "removed", before: content(one) })),
  ];
  return rows.sort((a, b) => order(a.path) - order(b.path));
}

function order(path) {
  const head = path.split("/")[0];
  const at = [...LOGS, "agents", "state", "settings", "labels"].indexOf(head);
  return at < 0 ? 99 : at;
}
