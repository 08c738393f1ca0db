// States of requests, their dependencies, and the layers of the graph.

import assert from "node:assert/strict";
import { test } from "node:test";
import { changed, connected, dependants, layers, ranges, related, stateOf } from "../../../crates/ui/page/core/tasks/tasks.js";

const graph = (edges) => new Map(Object.entries(edges).map(([seq, after]) => [Number(seq), { seq: Number(seq), after }]));

test("an entry has one state", () => {
  assert.equal(stateOf({}), "claimable");
  assert.equal(stateOf({ blocked_by: [1] }), "waiting");
  assert.equal(stateOf({ blocked_by: [] }), "claimable");
  assert.equal(stateOf({ claim: {}, after: [1] }), "claimed");
  assert.equal(stateOf({ failed: {}, attempts: 1 }), "failed");
  assert.equal(stateOf({ done: {} }), "done");
});

test("a request stands one layer after the last that it waits for", () => {
  const tasks = graph({ 1: [], 2: [], 3: [1, 2], 4: [3], 5: [1], 6: [4, 5] });
  assert.deepEqual(layers([6, 5, 4, 3, 2, 1], tasks), [[1, 2], [5, 3], [4], [6]]);
  assert.deepEqual(layers([4, 6], tasks), [[4], [6]]);
});

test("the connected part is found in both directions and bounded", () => {
  const tasks = graph({ 1: [], 2: [1], 3: [2], 4: [], 5: [4] });
  const waiting = dependants(tasks);
  assert.deepEqual(connected(tasks, waiting, 2), { seqs: [2, 1, 3], cut: false });
  assert.deepEqual(connected(tasks, waiting, 2, 2), { seqs: [2, 1], cut: true });
  assert.deepEqual(related(tasks, waiting, 3), { seqs: [3, 4, 5], cut: true });
  assert.deepEqual(connected(graph({ 1: [9] }), new Map(), 1), { seqs: [1], cut: false });
});

test("commits name the requests that they changed", () => {
  const commit = (...changes) => ({ changes });
  const one = changed([
    commit({ kind: "appended", log: "requests", entries: [{ seq: 3 }] }, { kind: "planned", first: 3, last: 4 }),
    commit({ kind: "appended", log: "requests", first: 7, count: 2, url: "…" }),
    commit({ kind: "claimed", request: 1 }, { kind: "updated", log: "requests", seq: 12 }, { kind: "appended", log: "questions", entries: [{ seq: 99 }] }),
  ]);
  assert.deepEqual([...one.seqs], [3, 4, 7, 8, 1, 12]);
  assert.equal(one.all, false);
  assert.equal(changed([commit({ kind: "cleared", log: "requests" })]).all, true);
  assert.equal(changed([commit({ kind: "cleared", log: "questions" })]).all, false);
  assert.equal(changed([]).all, true);
});

test("changed requests are read in pages that hold them", () => {
  assert.deepEqual(ranges(new Set([5, 1, 2, 300, 301])), [[1, 5], [300, 301]]);
  const many = ranges(new Set(Array.from({ length: 2500 }, (_, i) => i + 1)));
  assert.deepEqual(many, [[1, 1000], [1001, 2000], [2001, 2500]]);
});
