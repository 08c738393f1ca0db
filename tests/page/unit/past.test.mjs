// Marks, film, comparisons and histories of the view Past.

import assert from "node:assert/strict";
import { test } from "node:test";
import { clustered, compared, comparedLogs, differences, film, historyOf, leaves, marksOf, placeOf, pointOf, spread } from "../../../crates/ui/page/core/past.js";

test("a point has a session, a revision, or both", () => {
  assert.deepEqual(pointOf("12", "s"), { session: "s", at: "12" });
  assert.deepEqual(pointOf("a@b@12", "s"), { session: "a@b", at: "12" });
  assert.deepEqual(pointOf("fork@", "s"), { session: "fork", at: undefined });
});

test("a sample is spread from the first to the last", () => {
  assert.deepEqual(spread(3, 10), [1, 2, 3]);
  const some = spread(100_000, 40);
  assert.equal(some.length, 40);
  assert.equal(some[0], 1);
  assert.equal(some.at(-1), 100_000);
});

test("a film has at most one picture in a slot", () => {
  const shown = film([{ revision: 1 }, { revision: 24 }, { revision: 99 }], 0, 100, 2);
  assert.deepEqual(shown.map((one) => one?.revision), [24, 99]);
  assert.equal(placeOf(7, 7, 7), 1);
});

test("marks of a place become one, and a failure shows", () => {
  const marks = Array.from({ length: 10_000 }, (_, i) => ({ revision: i, kind: i === 500 ? "failure" : "restore" }));
  const found = clustered(marks, 0, 9999, 100);
  assert.ok(found.length <= 101);
  assert.equal(found.filter((one) => one.kind === "failure").length, 1);
});

test("failed requests, bad statuses and bad steps are failures", () => {
  const commit = (change) => marksOf({ revision: 1, at: "", changes: [change] }).map((mark) => mark.kind);
  assert.deepEqual(commit({ kind: "failed", request: 1 }), ["failure"]);
  assert.deepEqual(commit({ kind: "agent_put", agent: "a", value: { status: "ERROR" } }), ["failure"]);
  assert.deepEqual(commit({ kind: "agent_put", agent: "a", value: { status: "FINISH" } }), []);
  assert.deepEqual(commit({ kind: "appended", log: "trajectories", entries: [{ seq: 1, item: { Status: "FAIL" } }] }), ["failure"]);
});

test("documents and logs are compared by place", () => {
  const rows = compared(leaves({ a: { "x/y": 1, b: [] }, c: 2 }), leaves({ a: { "x/y": 1, b: [1] }, d: {} }));
  assert.deepEqual(rows.map(({ key, same }) => [key, same]), [["a/x~1y", true], ["a/b", false], ["c", false], ["d", false]]);
  assert.equal(leaves({}).size, 0);
  const logs = comparedLogs([{ seq: 1, item: { a: 1 } }], [{ seq: 1, item: { a: 1 } }, { seq: 2, item: {} }]);
  assert.deepEqual(logs.map(({ key, same }) => [key, same]), [[2, false], [1, true]]);
});

test("a path says which commits concern it", () => {
  assert.equal(historyOf("state/a/b").on, "state/a/b");
  assert.equal(historyOf("nonsense"), undefined);
  const { on, matches } = historyOf("requests/3");
  assert.equal(on, "requests");
  assert.ok(matches({ kind: "claimed", request: 3 }));
  assert.ok(matches({ kind: "appended", log: "requests", entries: [{ seq: 3 }] }));
  assert.ok(matches({ kind: "removed", log: "requests", ranges: [[2, 4]] }));
  assert.ok(!matches({ kind: "updated", log: "requests", seq: 4 }));
  assert.equal(historyOf("agents/A/memory/2").on, "agents/A/memory");
  const message = historyOf("agents/A/messages/2");
  assert.equal(message.on, "agents/A/messages");
  assert.ok(message.matches({ kind: "acked", log: "agents/A/messages", seq: 2 }));
  assert.ok(!message.matches({ kind: "acked", log: "agents/A/messages", seq: 3 }));
  assert.ok(!message.matches({ kind: "acked", log: "agents/B/messages", seq: 2 }));
});

test("a diff's page is one list, logs first", () => {
  const rows = differences({ added: [{ path: "state/x", value: 1 }], changed: [{ path: "requests/1", before: {}, after: {} }], removed: [] });
  assert.deepEqual(rows.map((row) => row.path), ["requests/1", "state/x"]);
});
