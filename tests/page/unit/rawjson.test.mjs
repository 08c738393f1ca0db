// Members of a JSON text: their own numbers, order and repeated names are kept.

import assert from "node:assert/strict";
import { test } from "node:test";
import { memberText } from "../../../crates/ui/page/core/json.js";

test("a member is cut out as it stands", () => {
  const text = '{"seq":1,"done":{"result":1.50,"at":"x"},"item" : {"n":1.50,"n":12345678901234567890,"q":"a\\"}, \\"item\\":1"}}\n';
  assert.equal(memberText(text, "item"), '{"n":1.50,"n":12345678901234567890,"q":"a\\"}, \\"item\\":1"}');
  assert.equal(memberText(memberText(text, "done"), "result"), "1.50");
  assert.equal(memberText(text, "seq"), "1");
  assert.equal(memberText(text, "result"), undefined);
  assert.equal(memberText('{"a":[1,{"b":2}],"b":"item"}', "b"), '"item"');
  assert.equal(memberText('{"a":"b","c":1}', "b"), undefined);
  assert.equal(memberText("[1]", "a"), undefined);
  assert.equal(memberText(undefined, "a"), undefined);
});
