// Moves between statuses, and their places in the diagram.

import assert from "node:assert/strict";
import { test } from "node:test";
import { arrow, moves, nextOf, placed, statuses } from "../../../crates/ui/page/core/statuses.js";

test("the seven move through CONTINUE, and CONFIRM also to FAIL", () => {
  assert.equal(moves().length, 13);
  assert.deepEqual(nextOf("CONFIRM"), ["CONTINUE", "FAIL"]);
  assert.deepEqual(nextOf("FINISH"), ["CONTINUE"]);
});

test("a session adds statuses and moves, and takes none away", () => {
  const states = { WAIT: { from: ["CONTINUE", "FAIL"], to: ["PENDING"] }, FAIL: { from: ["PENDING"], to: [] } };
  assert.deepEqual(statuses(states).slice(7), ["WAIT"]);
  assert.deepEqual(nextOf("WAIT", states), ["PENDING"]);
  assert.deepEqual(nextOf("PENDING", states), ["CONTINUE", "FAIL"]);
  assert.deepEqual(nextOf("FAIL", states), ["CONTINUE", "WAIT"]);
});

test("from a removed status only CONTINUE follows", () => {
  assert.deepEqual(nextOf("WAIT", {}), ["CONTINUE"]);
  assert.deepEqual(nextOf("toString", {}), ["CONTINUE"]);
});

test("every box of the diagram is within it, and no two are at one place", () => {
  const names = [...statuses(), ...Array.from({ length: 24 }, (_, i) => `OWN_${i}`)];
  const { at, width, height, box } = placed(names);
  assert.equal(new Set([...at.values()].map(String)).size, names.length);
  for (const [x, y] of at.values()) {
    assert.ok(x >= box.width / 2 && x <= width - box.width / 2);
    assert.ok(y >= box.height / 2 && y <= height - box.height / 2);
  }
  assert.match(arrow([0, 0], [200, 0], box), /^M[-\d. ]+Q[-\d. ]+$/);
});
