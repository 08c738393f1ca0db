// Differences of texts by lines: the fewest edits, and what is done without the time for them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { compareLines } from "../../../crates/ui/page/core/lines.js";

/** The number of lines that two lists have in common, in order. */
function common(old, now) {
  let row = new Array(now.length + 1).fill(0);
  for (const line of old) {
    const next = [0];
    now.forEach((other, i) => next.push(line === other ? row[i] + 1 : Math.max(row[i + 1], next[i])));
    row = next;
  }
  return row.at(-1);
}

const linesOf = (runs, ...kinds) => runs.filter((run) => kinds.includes(run.kind)).flatMap((run) => run.lines);

/** All lists of up to `most` of these lines. */
function lists(lines, most) {
  return most === 0 ? [[]] : [[], ...lists(lines, most - 1).flatMap((list) => lines.map((line) => [line, ...list]))];
}

test("a difference gives both texts, with the fewest edits", () => {
  const all = lists(["a", "b", ""], 4);
  for (const old of all) {
    for (const now of all) {
      const { runs, exact } = compareLines(old, now);
      assert.ok(exact);
      assert.deepEqual(linesOf(runs, "same", "removed"), old);
      assert.deepEqual(linesOf(runs, "same", "added"), now);
      assert.equal(linesOf(runs, "same").length, common(old, now), `${old} to ${now}`);
    }
  }
});

test("what was removed stands before what came for it", () => {
  const { runs } = compareLines(["head", "1", "2", "tail"], ["head", "3", "4", "tail"]);
  assert.deepEqual(runs.map((run) => [run.kind, ...run.lines]), [["same", "head"], ["removed", "1", "2"], ["added", "3", "4"], ["same", "tail"]]);
});

test("without time all between what is common is changed", () => {
  const { runs, exact } = compareLines(["a", "b", "c", "z"], ["a", "c", "d", "z"], 0);
  assert.equal(exact, false);
  assert.deepEqual(runs.map((run) => [run.kind, ...run.lines]), [["same", "a"], ["removed", "b", "c"], ["added", "c", "d"], ["same", "z"]]);
});
