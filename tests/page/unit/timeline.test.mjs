// Rows and groups of the timeline.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Groups, itemText, passes, rows } from "../../../crates/ui/page/core/timeline.js";

const AT = "2026-01-01T00:00:00.000Z";
const commit = (revision, agent, ...changes) => ({ revision, at: AT, agent, kind: "transaction", changes });
const appended = (log, seq, item, more) => ({ kind: "appended", log, entries: [{ seq, item, ...more }] });
const shapes = (groups) => groups.list.map((group) => group.rows.map((row) => row.type).join(" "));

test("a question has its answer, and a request its claim and result", () => {
  const groups = new Groups();
  groups.push([
    commit(1, "A", appended("questions", 1, { question: "Which?" })),
    commit(2, "A", appended("requests", 1, { request: "Go" })),
    commit(3, "B", { kind: "claimed", request: 1, agent: "B", fence: 3, expires_at: AT }),
    commit(4, undefined, { kind: "updated", log: "questions", seq: 1, item: { question: "Which?", answer: "This" } }),
  ]);
  const touched = groups.push([commit(5, "B", { kind: "finished", request: 1, fence: 3, result: 1 })]);
  assert.deepEqual(shapes(groups), ["question answer", "request claim done"]);
  assert.deepEqual([...touched], [groups.list[1]]);
});

test("a request has its result, verdict and cancellation", () => {
  const groups = new Groups();
  groups.push([
    commit(1, "A", appended("requests", 1, { request: "Go" }), { kind: "planned", first: 1, last: 1, review: true }),
    commit(2, undefined, { kind: "due", requests: [[1, 1]] }),
    commit(3, "B", { kind: "finished", request: 1, result: 1 }),
    commit(4, "A", { kind: "verdict", request: 1, accept: false, reason: "short" }),
    commit(5, "A", { kind: "cancel_requested", request: 1 }, { kind: "cancelled", request: 1 }),
    commit(6, undefined, { kind: "deadline_passed", request: 1 }),
    commit(7, "B", { kind: "finished", request: 1, result: 1 }, { kind: "verdict", request: 1, accept: true }),
  ]);
  assert.deepEqual(shapes(groups), ["request planned due result refused cancelling cancelled late result accepted"]);
});

test("a question is open until it is answered, expires or is deleted", () => {
  const groups = new Groups();
  groups.push([1, 2, 3, 4].map((seq) => commit(seq, "A", appended("questions", seq, { question: "?" }))));
  groups.push([commit(5, "A", appended("questions", 5, { question: "?", answer: "known" }))]);
  const open = () => groups.list.filter((group) => group.open).map((group) => group.open.seq);
  assert.deepEqual(open(), [1, 2, 3, 4]);
  groups.push([commit(6, "A", { kind: "updated", log: "questions", seq: 1, item: { question: "Now?" } })]);
  assert.equal(groups.list[0].open.item.question, "Now?");
  groups.push([commit(7, "B", { kind: "updated", log: "questions", seq: 1, item: { question: "Now?", answer: "Yes" } }), commit(8, undefined, { kind: "question_expired", question: 2 })]);
  assert.deepEqual(open(), [3, 4]);
  const touched = groups.push([commit(9, "A", { kind: "removed", log: "questions", ranges: [[3, 3]] }), commit(10, "A", { kind: "removed", log: "requests", ranges: [[4, 4]] })]);
  assert.deepEqual(open(), [4]);
  assert.ok(touched.has(groups.list[2]));
  groups.push([commit(11, "A", { kind: "cleared" })]);
  assert.deepEqual(open(), []);
});

test("a message has its acknowledgement, its sender and its receiver", () => {
  const groups = new Groups();
  groups.push([
    commit(1, "A", appended("agents/B/messages", 1, { text: "Go" })),
    commit(2, undefined, appended("agents/B/messages", 2, { text: "Stop" })),
    commit(3, "B", { kind: "acked", log: "agents/B/messages", seq: 1 }),
    commit(4, "A", appended("agents/C/messages", 1, { subject: "Other" })),
  ]);
  assert.deepEqual(shapes(groups), ["message acked", "message", "message"]);
  const [one] = groups.list[0].rows;
  assert.deepEqual([one.agent, one.agentOf, itemText(one.log, one.item)], ["A", "B", "Go"]);
  assert.ok(passes(groups.list[1], { kinds: ["message"], agents: ["B"] }));
  assert.equal(itemText("agents/C/messages", { subject: "Other" }), "Other");
});

test("a step has its memory and what its commit wrote besides", () => {
  const groups = new Groups();
  groups.push([
    commit(1, "A", { kind: "state_put", path: "n", value: 1 }, { kind: "agent_put", agent: "A", value: { status: "CONTINUE" } }, appended("trajectories", 1, { step: 1 }), appended("agents/A/memory", 1, { step: 1 })),
    commit(2, "A", { kind: "state_put", path: "n", value: 2 }, { kind: "state_put", path: "m", value: 2 }),
    commit(3, "A", appended("trajectories", 2, { step: 2 })),
  ]);
  assert.deepEqual(shapes(groups), ["step memory state_put status", "state_put state_put", "step"]);
});

test("a memory joins the step of its number", () => {
  const groups = new Groups();
  groups.push([
    commit(1, "A", appended("trajectories", 1, { step: 1 })),
    commit(2, "A", appended("trajectories", 2, { step: 2 })),
    commit(3, "A", appended("agents/A/memory", 1, { step: 1, status: "FAIL" })),
    commit(4, "A", appended("agents/A/memory", 2, { step: 2 })),
  ]);
  assert.deepEqual(shapes(groups), ["step", "step memory", "memory"]);
});

const shot = (seq, image_path, more) => appended("screenshots", seq, { metadata: "x", image_path }, { image: { url: "/i" }, ...more });

test("a screenshot is a row of its own unless a step names it", () => {
  const groups = new Groups();
  groups.push([
    commit(1, "A", appended("trajectories", 1, { step: 1 })),
    commit(2, "A", shot(1, "")),
    commit(3, "A", { kind: "state_put", path: "ufo", value: 1 }, shot(2, ""), appended("trajectories", 2, { step: 2 })),
  ]);
  assert.deepEqual(shapes(groups), ["step", "screenshot", "screenshot", "step state_put"]);
});

test("a step names a screenshot before or after it, by seq or path", () => {
  const groups = new Groups();
  groups.push([
    commit(1, "A", appended("trajectories", 1, { step: 1 })),
    commit(2, "A", shot(1, "")),
    commit(3, "B", appended("questions", 1, { question: "Which?" })),
    commit(4, "B", appended("trajectories", 2, { step: 2, screenshot: 1 })),
    commit(5, "A", shot(2, "logs/2.png")),
    commit(6, "C", appended("agents/C/memory", 1, { Image_Path: "logs/2.png" })),
    commit(7, "A", appended("trajectories", 3, { step: 3, screenshot: [3, 1], path: "other" })),
  ]);
  assert.deepEqual(shapes(groups), ["step", "question", "screenshot step", "screenshot memory", "step"]);
  assert.deepEqual(groups.list[4].also.map((row) => row.seq), [1]);
  const [touched] = groups.push([commit(8, "A", shot(3, "logs/3.png"))]);
  assert.deepEqual(shapes(groups).at(-1), "step screenshot");
  assert.equal(touched, groups.list[4]);
});

test("steps that wait for one screenshot show it all, and it stands with the first", () => {
  const groups = new Groups();
  groups.push([1, 2, 3].map((n) => commit(n, "A", appended("trajectories", n, { step: n, screenshot: 1, path: "one.png" }))));
  const before = groups.list.map((group) => group.version);
  const touched = groups.push([commit(4, "B", shot(1, "one.png"))]);
  assert.deepEqual(shapes(groups), ["step screenshot", "step", "step"]);
  assert.deepEqual(groups.list.map((group) => group.also.map((row) => row.seq)), [[], [1], [1]]);
  assert.deepEqual([...touched], groups.list);
  assert.ok(groups.list.every((group, i) => group.version > before[i]));
});

test("of screenshots with the same path a step has the newest before it", () => {
  const groups = new Groups();
  const step = (revision, seq) => commit(revision, "A", appended("trajectories", seq, { image_path: "screen.png" }));
  groups.push([commit(1, "A", shot(1, "screen.png")), step(2, 1), commit(3, "A", shot(2, "screen.png")), step(4, 2)]);
  assert.deepEqual(groups.list.map((group) => group.rows.filter((row) => row.image).map((row) => row.seq)), [[1], [2]]);
});

test("a change without contents, or of an unknown kind, is a row", () => {
  const brief = commit(1, "A", { kind: "appended", log: "trajectories", first: 3, count: 2, url: "/x" }, { kind: "something_new" });
  assert.deepEqual(rows(brief).map((row) => [row.type, row.seq]), [["step", 3], ["step", 4], ["something_new", undefined]]);
  assert.equal(itemText("trajectories", undefined), "");
});

test("rows of commits of one revision have ids of their own if the commits do", () => {
  const commits = ["requests/1", "requests/2"].map((id, i) => ({ ...commit(5, "A", appended("requests", i + 1, {}), { kind: "planned", first: i + 1, last: i + 1 }), id }));
  assert.deepEqual([...commits, commit(5, "A", appended("requests", 3, {}))].flatMap(rows).map((row) => row.id), ["requests/1:0", "requests/1:1", "requests/2:0", "requests/2:1", "5:0"]);
});

test("filters look at agents, kinds, statuses and texts", () => {
  const groups = new Groups();
  groups.push([commit(1, "A", appended("trajectories", 1, { Thought: "It Is Open", Status: "fail" }))]);
  const [group] = groups.list;
  assert.ok(passes(group, { agents: ["A"], kinds: ["step"], statuses: ["FAIL"], text: "it is open" }));
  assert.ok(!passes(group, { agents: ["B"] }));
  assert.ok(!passes(group, { kinds: ["question"] }));
  assert.ok(!passes(group, { text: "closed" }));
});

test("items of the original have a text, whatever their members are called", () => {
  assert.equal(itemText("requests", { request_0: "open it" }), "open it");
  assert.equal(itemText("trajectories", { Step: 1, Thought: "I see" }), "I see");
  assert.equal(itemText("questions", { text: "three" }), "three");
  assert.equal(itemText("screenshots", { metadata: null, image_path: "a.png" }), "a.png");
  assert.equal(itemText("requests", { n: 1 }), '{"n":1}');
});
