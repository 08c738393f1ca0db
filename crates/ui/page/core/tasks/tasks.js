// Requests as tasks: their states, and which waits for which as layers of a graph. Pure functions.

/** The states of a request, with their names. */
export const STATES = {
  waiting: "Waiting",
  claimable: "Claimable",
  claimed: "Claimed",
  done: "Done",
  failed: "Failed",
};

/** The most requests of one graph. */
export const GRAPH_MAX = 200;

/** The state of a request's entry. */
export function stateOf(entry) {
  if (entry.done) return "done";
  if (entry.failed) return "failed";
  if (entry.claim) return "claimed";
  return entry.blocked_by?.length > 0 ? "waiting" : "claimable";
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

/** The newest requests that wait for others or are waited for: `{seqs, cut}`. */
export function related(tasks, waiting, max = GRAPH_MAX) {
  const all = [...tasks.values()].filter(({ seq, after }) => after?.length > 0 || waiting.has(seq)).map(({ seq }) => seq);
  all.sort((a, b) => a - b);
  return { seqs: all.slice(-max), cut: all.length > max };
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
