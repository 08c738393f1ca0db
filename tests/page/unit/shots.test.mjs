// Geometry of the gallery, and zoom and pan.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fitScale, gridOf, held, joined, labelText, metadataText, visible, zoomed } from "../../../crates/ui/page/core/shots.js";

test("a grid fills its width, and has one column at least", () => {
  const grid = gridOf(1000);
  assert.equal(grid.columns, 4);
  assert.ok(grid.tile * 4 + 12 * 3 <= 1000);
  assert.equal(gridOf(100).columns, 1);
});

test("only tiles near the visible part are in the document", () => {
  const grid = gridOf(1000);
  const [first, last] = visible(grid, 10_000, 100 * grid.row, 800);
  assert.ok(first <= 100 * grid.columns && first > 90 * grid.columns);
  assert.ok(last - first < 50);
  assert.deepEqual(visible(grid, 3, 0, 800), [0, 3]);
  assert.deepEqual(visible(grid, 3, 99_999, 800), [3, 3]);
});

test("a zoom keeps the point under the pointer", () => {
  const view = { scale: 1, x: 10, y: -20 };
  const at = { x: 100, y: 50 };
  const next = zoomed(view, 2, at);
  assert.equal((at.x - view.x) / view.scale, (at.x - next.x) / next.scale);
  assert.equal((at.y - view.y) / view.scale, (at.y - next.y) / next.scale);
  assert.equal(zoomed(view, 1e9).scale, 16);
});

test("an image fits but is not enlarged, and never leaves its pane", () => {
  assert.equal(fitScale({ width: 2000, height: 100 }, { width: 1000, height: 800 }), 0.5);
  assert.equal(fitScale({ width: 20, height: 10 }, { width: 1000, height: 800 }), 1);
  const view = held({ scale: 1, x: 1e6, y: -1e6 }, { width: 200, height: 100 }, { width: 400, height: 300 });
  assert.deepEqual(view, { scale: 1, x: 260, y: -160 });
});

test("pages join by seq in either order, without doubles", () => {
  const seqs = (list) => list.map(({ seq }) => seq);
  assert.deepEqual(seqs(joined([{ seq: 3 }, { seq: 2 }], [{ seq: 2 }, { seq: 4 }], true)), [4, 3, 2]);
  assert.deepEqual(seqs(joined([{ seq: 2 }], [{ seq: 1 }], false)), [1, 2]);
});

test("any metadata and label is a text", () => {
  assert.equal(metadataText({ metadata: { a: 1, b: "c" } }), "a: 1, b: c");
  assert.equal(metadataText({ metadata: '{"a":"b"}' }), "a: b");
  assert.equal(metadataText({ metadata: "{not json" }), "{not json");
  assert.equal(metadataText({ metadata: null }), "");
  assert.equal(labelText({ image_path: "", image_str: "javascript:x" }), "javascript:x");
  assert.equal(labelText({}), "");
});
