// Requests as tasks: their states, and which waits for which as layers of a graph. Pure functions.

import { brief, time } from "../format.js";

/** The states of a request, with their names. */
export const STATES = {
  pending: "Pending",
  delayed: "Delayed",
  waiting: "Waiting",
  claimed: "Claimed",
  in_review: "In review",
  done: "Done",
  failed: "Failed",
  cancelled: "Cancelled",
};

/** True until a request has ended. */
export function isOpen({ done, failed, cancelled }) {
  return !(done || failed || cancelled);
}

/** The most requests of one graph. */
export const GRAPH_MAX = 200;

/** The state of a request's entry. */
export function stateOf(entry) {
  if (entry.done) return "done";
  if (entry.failed) return "failed";
  if (entry.cancelled) return "cancelled";
  if (entry.in_review) return "in_review";
  if (entry.claim) return "claimed";
  if (entry.blocked_by?.length > 0) return "waiting";
  return entry.not_before === undefined ? "pending" : "delayed";
}

/** The longest reason in a line. */
const REASON_CHARS = 240;

/** Requests that a line names at most. */
const NAMED_MAX = 4;

/**
 * What the name of a request's state does not say: `["waits for #2, which was cancelled", "1 of 3 failed: no paper"]`. `tasks`, a
 * map by seq, is asked how those ended that it waits for.
 */
export function details(entry, tasks) {
  const state = stateOf(entry);
  const reason = (entry.failed ?? entry.cancelled)?.reason;
  if (!isOpen(entry)) return reason === undefined ? [] : [brief(reason, REASON_CHARS)];
  const found = [];
  if (state === "waiting") found.push(wait(entry, tasks));
  if (state === "in_review") found.push("waits for a verdict");
  if (entry.cancel) found.push(because("to be cancelled", entry.cancel.reason));
  if (entry.not_before !== undefined) found.push(`not before ${time(entry.not_before)}`);
  const last = failedAttempt(entry);
  // A retry gives all attempts back, and the past ones stay.
  if (last && entry.failures !== 0) found.push(because(entry.attempts ? `${entry.failures} of ${entry.attempts} failed` : "the last attempt failed", last.reason ?? OUTCOMES[last.outcome]));
  return found;
}

/** The ends of an attempt that say why it failed. */
const OUTCOMES = { lapsed: "the claim lapsed", refused: "the result was refused" };

/** The ends of a request that stop those which wait for it. */
const STOPS = { failed: "failed", cancelled: "was cancelled" };

function wait({ blocked_by: all, stopped_by = [] }, tasks) {
  const stop = (seq) => (tasks?.has(seq) ? STOPS[tasks.get(seq).state] : stopped_by.includes(seq) && "failed or was cancelled");
  const stopped = all.find(stop);
  const named = stopped ? [stopped] : all.slice(0, NAMED_MAX);
  const which = stopped ? `, which ${stop(stopped)},` : "";
  const more = all.length - named.length;
  return `waits for ${named.map((seq) => `#${seq}`).join(", ")}${more > 0 ? `${which} and ${more} more` : which.slice(0, -1)}`;
}

/** The last attempt that did not succeed, unless its agent gave the request back. */
export function failedAttempt({ past_attempts = [] }) {
  return past_attempts.findLast(({ outcome }) => outcome !== "released");
}

function because(what, reason) {
  return reason === undefined ? what : `${what}: ${brief(reason, REASON_CHARS)}`;
}

/** The requests that wait for each one: a map from seq to seqs. `tasks` is a map by seq. */
export function dependants(tasks) {
  const found = new Map();
  for (const { seq, after = [] } of tasks.values()) {
    for (const before of after) {
      if (!found.has(before)) found.set(before, []);
      found.get(before).push(seq);
    }
  }
  return found;
}

/** Those that a request waits for and that wait for it, over any number of steps, nearest first: `{seqs, cut}`. */
export function connected(tasks, waiting, seq, max = GRAPH_MAX) {
  const found = new Set([seq]);
  const queue = [seq];
  for (let i = 0; i < queue.length; i += 1) {
    const near = [...(tasks.get(queue[i])?.after ?? []), ...(waiting.get(queue[i]) ?? [])];
    for (const other of near) {
      if (found.has(other) || !tasks.has(other)) continue;
      if (found.size >= max) return { seqs: [...found], cut: true };
      found.add(other);
      queue.push(other);
    }
  }
  return { seqs: [...found], cut: false };
}

/** The newest requests, first of those that wait for others or are waited for: `{seqs, cut}`. */
export function newest(tasks, waiting, max = GRAPH_MAX) {
  const isLinked = (seq) => tasks.get(seq).after?.length > 0 || waiting.has(seq);
  const all = [...tasks.keys()].sort((a, b) => isLinked(b) - isLinked(a) || b - a);
  return { seqs: all.slice(0, max).sort((a, b) => a - b), cut: all.length > max };
}

/** Parts requests into those that others of them wait for, or that wait for others of them, and the rest. */
export function parted(seqs, tasks) {
  const within = new Set(seqs);
  const linked = new Set();
  for (const seq of seqs) {
    for (const before of tasks.get(seq)?.after ?? []) if (within.has(before)) linked.add(before).add(seq);
  }
  return { linked: seqs.filter((seq) => linked.has(seq)), alone: seqs.filter((seq) => !linked.has(seq)) };
}

/**
 * Layers of a graph, from those that wait for none: `[[seq, …], …]`. A request stands one layer after the last that it
 * waits for, and within its layer near those.
 */
export function layers(seqs, tasks) {
  const within = new Set(seqs);
  const depth = new Map();
  // A request only ever waits for older ones, so ascending order has each after all that it waits for.
  for (const seq of [...seqs].sort((a, b) => a - b)) {
    const before = (tasks.get(seq)?.after ?? []).filter((other) => within.has(other) && other < seq);
    depth.set(seq, before.length === 0 ? 0 : 1 + Math.max(...before.map((other) => depth.get(other))));
  }
  const found = [];
  for (const [seq, layer] of depth) (found[layer] ??= []).push(seq);
  const rank = new Map();
  for (const layer of found) {
    const weight = (seq) => {
      const places = (tasks.get(seq)?.after ?? []).map((other) => rank.get(other)).filter((place) => place !== undefined);
      return places.length === 0 ? undefined : places.reduce((sum, place) => sum + place, 0) / places.length;
    };
    const weights = new Map(layer.map((seq) => [seq, weight(seq) ?? 0]));
    layer.sort((a, b) => weights.get(a) - weights.get(b) || a - b);
    layer.forEach((seq, i) => rank.set(seq, i - (layer.length - 1) / 2));
  }
  return found;
}

/** Ascending seqs as ranges `[first, last]` that one page of a log holds each. */
export function ranges(seqs, page = 1000) {
  const found = [];
  for (const seq of [...seqs].sort((a, b) => a - b)) {
    const last = found[found.length - 1];
    if (last && seq - last[0] < page && seq - last[1] < 100) last[1] = seq;
    else found.push([seq, seq]);
  }
  return found;
}

/** The requests that commits changed: `{seqs, all}`, where `all` asks to read everything again. */
export function changed(commits) {
  const seqs = new Set();
  let all = commits.length === 0;
  const many = (first, count) => {
    for (let i = 0; i < count; i += 1) seqs.add(first + i);
  };
  for (const { changes } of commits) {
    for (const change of changes) {
      if (["restored", "adopted", "deleted"].includes(change.kind)) all = true;
      else if (change.kind === "planned") many(change.first, change.last - change.first + 1);
      else if (change.kind === "due") change.requests.forEach(([first, last]) => many(first, last - first + 1));
      else if (change.request !== undefined) seqs.add(change.request);
      else if (change.log !== "requests") continue;
      else if (change.entries) change.entries.forEach(({ seq }) => seqs.add(seq));
      else if (change.kind === "appended") many(change.first, change.count);
      else if (change.kind === "updated") seqs.add(change.seq);
      else all = true;
    }
  }
  return { seqs, all };
}
