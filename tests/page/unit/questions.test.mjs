// Options of questions, and the ends of questions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { draftOf, keepDraft } from "../../../crates/ui/page/core/drafts.js";
import { keyOf } from "../../../crates/ui/page/core/inbox.js";
import { endOf, OPTIONS_MAX, optionsOf } from "../../../crates/ui/page/core/questions/questions.js";

test("options are texts, numbers or objects; anything else is left out", () => {
  const found = optionsOf({ options: ["Yes", " ", 3, false, { label: "Lobby", value: "p0" }, { text: "Other" }, null, [1], { value: {} }] });
  assert.deepEqual(found, [
    { label: "Yes", value: "Yes" },
    { label: "3", value: "3" },
    { label: "false", value: "false" },
    { label: "Lobby", value: "p0" },
    { label: "Other", value: "Other" },
  ]);
  assert.equal(optionsOf({ Choices: Array(99).fill("x") }).length, OPTIONS_MAX);
  assert.deepEqual(optionsOf({ options: "yes" }), []);
});

test("a question ends answered, skipped or expired", () => {
  assert.equal(endOf({ item: { question: "?" } }), undefined);
  assert.deepEqual(endOf({ item: { answer: "a" }, updated_by: "A" }), { kind: "answered", answer: "a", by: "A" });
  assert.equal(endOf({ item: { answer: null, skipped: true } }).kind, "skipped");
  assert.equal(endOf({ item: { answer: "d", expired: true } }).kind, "expired");
});

test("an unsent answer belongs to one question of one session", () => {
  const one = { session: "s", seq: 1, at: "t" };
  keepDraft(keyOf(one), "half");
  assert.equal(draftOf(keyOf({ ...one, revision: 9 })), "half");
  assert.equal(draftOf(keyOf({ ...one, at: "later" })), "");
  keepDraft(keyOf(one), "");
  assert.equal(draftOf(keyOf(one)), "");
});
