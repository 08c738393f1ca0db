// States of requests, their dependencies, and the layers of the graph.

import assert from "node:assert/strict";
import { test } from "node:test";
import { time } from "../../../crates/ui/page/core/format.js";
import { changed, connected, dependants, details, layers, newest, parted, ranges, stateOf } from "../../../crates/ui/page/core/tasks/tasks.js";

const AT = "2026-01-01T00:00:00.000Z";
const graph = (edges) => new Map(Object.entries(edges).map(([seq, after]) => [Number(seq), { seq: Number(seq), after }]));

test("an entry has one state", () => {
  assert.equal(stateOf({}), "pending");
  assert.equal(stateOf({ blocked_by: [1] }), "waiting");
  assert.equal(stateOf({ blocked_by: [] }), "pending");
  assert.equal(stateOf({ not_before: AT }), "delayed");
  assert.equal(stateOf({ not_before: AT, blocked_by: [1] }), "waiting");
  assert.equal(stateOf({ claim: {}, cancel: {} }), "claimed");
  assert.equal(stateOf({ in_review: {}, review: true }), "in_review");
  assert.equal(stateOf({ cancelled: {} }), "cancelled");
  assert.equal(stateOf({ claim: {}, after: [1] }), "claimed");
  assert.equal(stateOf({ failed: {}, attempts: 1 }), "failed");
  assert.equal(stateOf({ done: {} }), "done");
});

test("what a state's name does not say is said in words", () => {
  const tasks = new Map([[2, { state: "cancelled" }], [3, { state: "failed" }], [4, { state: "pending" }]]);
  const says = (entry, ...expected) => assert.deepEqual(details(entry, tasks), expected);
  says({});
  says({ blocked_by: [4] }, "waits for #4");
  says({ blocked_by: [4, 2] }, "waits for #2, which was cancelled, and 1 more");
  says({ blocked_by: [3], stopped_by: [3] }, "waits for #3, which failed");
  says({ blocked_by: [9], stopped_by: [9] }, "waits for #9, which failed or was cancelled");
  says({ blocked_by: [4], stopped_by: [4] }, "waits for #4");
  says({ blocked_by: [4, 5, 6, 7, 8, 9] }, "waits for #4, #5, #6, #7 and 2 more");
  says({ not_before: AT }, `not before ${time(AT)}`);
  says({ claim: {}, cancel: { reason: "no need" } }, "to be cancelled: no need");
  says({ in_review: {} }, "waits for a verdict");
  says({ failed: { reason: { code: 3 } }, past_attempts: [{ outcome: "failed", reason: "x" }] }, '{"code":3}');
  says({ cancelled: {} });
  says({ done: {}, past_attempts: [{ outcome: "failed" }] });
});

test("of past attempts the last that failed is said", () => {
  const says = (entry, ...expected) => assert.deepEqual(details(entry), expected);
  const failed = { outcome: "failed", reason: "no\npaper" };
  says({ attempts: 3, failures: 1, past_attempts: [failed, { outcome: "released" }] }, "1 of 3 failed: no paper");
  says({ attempts: 3, failures: 2, past_attempts: [failed, { outcome: "lapsed" }] }, "2 of 3 failed: the claim lapsed");
  says({ past_attempts: [{ outcome: "refused", reason: "too short" }] }, "the last attempt failed: too short");
  says({ attempts: 2, failures: 1, past_attempts: [{ outcome: "failed" }] }, "1 of 2 failed");
  says({ attempts: 3, failures: 0, past_attempts: [failed] });
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
  assert.deepEqual(newest(tasks, waiting, 3), { seqs: [3, 4, 5], cut: true });
  assert.deepEqual(connected(graph({ 1: [9] }), new Map(), 1), { seqs: [1], cut: false });
});

test("a graph of too many keeps those with links first", () => {
  const tasks = graph({ 1: [], 2: [1], 3: [], 4: [] });
  assert.deepEqual(newest(tasks, dependants(tasks), 3), { seqs: [1, 2, 4], cut: true });
  assert.deepEqual(parted([1, 2, 3, 4], tasks), { linked: [1, 2], alone: [3, 4] });
  assert.deepEqual(parted([2, 3], tasks), { linked: [], alone: [2, 3] });
});

test("commits name the requests that they changed", () => {
  const commit = (...changes) => ({ changes });
  const one = changed([
    commit({ kind: "appended", log: "requests", entries: [{ seq: 3 }] }, { kind: "planned", first: 3, last: 4 }),
    commit({ kind: "appended", log: "requests", first: 7, count: 2, url: "…" }),
    commit({ kind: "claimed", request: 1 }, { kind: "due", requests: [[20, 21], [30, 30]] }, { kind: "updated", log: "requests", seq: 12 }, { kind: "appended", log: "questions", entries: [{ seq: 99 }] }),
  ]);
  assert.deepEqual([...one.seqs], [3, 4, 7, 8, 1, 20, 21, 30, 12]);
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
