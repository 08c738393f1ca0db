// Parser of JSON texts, and the state's tree made from them.

import assert from "node:assert/strict";
import test from "node:test";

import { children, parseJson, preview, textOf, unescaped } from "../../../crates/ui/page/core/state/json-tree.js";
import { below, changes, filtered, idOf, lastChange, nodeOf, openDepth, replaced, ROOT, rowsOf, touchesPath } from "../../../crates/ui/page/core/state/tree.js";

const keep = (text) => assert.equal(textOf(parseJson(text)), text);

test("numbers keep their text and members their order", () => {
  keep('{"b":1.50,"a":123456789012345678901234567890,"2":-0.0,"1":1E+30}');
  keep('[1.0,[],{},"a\\u00e9\\"\\\\",true,false,null,{"":{"x":[0]}}]');
  keep('{"__proto__":1,"constructor":{"toString":2}}');
});

test("white space goes, strings stay as they are", () => {
  assert.equal(textOf(parseJson(' { "a" :\n[ 1 ,\t"x y" ] } \r\n')), '{"a":[1,"x y"]}');
});

test("a fault is told with line and column", () => {
  const faults = {
    "": "line 1, column 1: expected a value, found the end of the text",
    '{"a": 1,}': "line 1, column 9: expected a key in double quotes",
    '{\n  "a": tru\n}': "line 2, column 8: expected a value",
    "[1 2]": "line 1, column 4: expected ',' or ']'",
    '{"a" 1}': "line 1, column 6: expected ':' after the key",
    "01": "line 1, column 2: not a JSON number",
    "-": "line 1, column 1: expected digits",
    NaN: "line 1, column 1: expected a value",
    '"a': "line 1, column 1: the string has no closing quotation mark",
    '"a\nb"': "line 1, column 3: a line break or control character in a string",
    '"\\x"': "line 1, column 2: an unknown escape in a string",
    "1 1": "line 1, column 3: expected the end of the text",
    "{'a': 1}": "line 1, column 2: expected a key in double quotes",
  };
  for (const [text, message] of Object.entries(faults)) assert.throws(() => parseJson(text), { name: "JsonError", message }, text);
});

test("a text too deep is refused, not the stack overrun", () => {
  assert.throws(() => parseJson("[".repeat(100_000)), { name: "JsonError" });
});

test("a long string and many keys are read in time that one does not notice", () => {
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`key${i}`, { n: i }])));
  assert.equal(parseJson(many).size, 60_001);
  keep(JSON.stringify("x\\\"".repeat(1_000_000)));
});

test("JSON of many shapes comes out as JSON.stringify writes it", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const make = (depth) => {
    const kind = random(depth > 3 ? 5 : 7);
    if (kind === 0) return random(1000) - 500;
    if (kind === 1) return random(1e6) / 1024;
    if (kind === 2) return ["", "a/b", 'say "x"\\', "\u0007\n", "é😀", "\u2028"][random(6)];
    if (kind === 3) return random(2) === 0;
    if (kind === 4) return null;
    if (kind === 5) return Array.from({ length: random(5) }, () => make(depth + 1));
    return Object.fromEntries(Array.from({ length: random(5) }, (_, i) => [`k${i}~/"`, make(depth + 1)]));
  };
  for (let i = 0; i < 500; i += 1) keep(JSON.stringify(make(0)));
});

test("escaped letters are shown as letters, hidden characters stay escaped", () => {
  assert.equal(unescaped(String.raw`"\u00e9 \u4f60\u597d \ud83d\ude00"`), '"é 你好 😀"');
  for (const raw of [String.raw`"\u202e"`, String.raw`"\u0000\u000a"`, String.raw`"\u0022"`, String.raw`"\\u00e9"`]) assert.equal(unescaped(raw), raw);
});

test("a preview is one short line", () => {
  assert.equal(preview(parseJson('{"a":{"b":[1,2]},"c":"x"}')), '{a: {b: [1, 2]}, c: "x"}');
  assert.ok(preview(parseJson(JSON.stringify(Array(10_000).fill("abc"))), 80).length < 120);
});

const doc = parseJson('{"plan":{"a/b":1,"t~":2,"":3,"steps":[{"n":1},{"n":2}]},"x":1.0}');

test("a place has the path of the API, and below arrays and odd names a pointer", () => {
  const plan = below(ROOT, "plan");
  assert.deepEqual(below(plan, "a/b"), { path: "plan/a~1b", sub: "" });
  assert.deepEqual(below(plan, "t~"), { path: "plan/t~0", sub: "" });
  assert.deepEqual(below(plan, ""), { path: "plan", sub: "/" });
  const first = below(below(below(plan, "steps"), 0), "n");
  assert.deepEqual(first, { path: "plan/steps", sub: "/0/n" });
  assert.equal(nodeOf(doc, first).raw, "1");
  assert.equal(nodeOf(doc, { path: "plan", sub: "/" }).raw, "3");
  assert.equal(nodeOf(doc, { path: "plan/a~1b", sub: "" }).raw, "1");
  assert.equal(nodeOf(doc, { path: "x/y", sub: "" }), undefined);
  assert.equal(nodeOf(doc, ROOT), doc);
});

test("rows are those of open containers, in order", () => {
  const open = new Set(["plan"]);
  const rows = rowsOf(doc, (id) => open.has(id));
  assert.deepEqual(rows.map((row) => row.id), ["plan", "plan/a~1b", "plan/t~0", "plan/", "plan/steps", "x"]);
  assert.deepEqual(rows.map((row) => [row.level, row.position, row.of, row.parent]).slice(4), [[2, 4, 4, 0], [1, 2, 2, -1]]);
});

test("a filter shows matches by path or value with all above them", () => {
  const filter = filtered(doc, "STEPS/1/N");
  assert.deepEqual(rowsOf(doc, () => true, filter).map((row) => row.id), ["plan", "plan/steps", "plan/steps/1", "plan/steps/1/n"]);
  assert.equal(filter.matches.size, 1);
  assert.deepEqual([...filtered(doc, "1.0").matches], ["x"]);
  assert.equal(filtered(doc, "  "), undefined);
});

test("an update makes only the nodes on its path anew, and tells what changed", () => {
  const next = replaced(doc, ["plan", "t~"], parseJson("5"));
  assert.equal(next.members.get("x"), doc.members.get("x"));
  assert.deepEqual([...changes(doc, next)], ["plan/t~0"]);
  assert.deepEqual([...next.members.get("plan").members.keys()], ["a/b", "t~", "", "steps"]);
  const gone = replaced(next, ["x"], undefined);
  assert.equal(textOf(gone), '{"plan":{"a/b":1,"t~":5,"":3,"steps":[{"n":1},{"n":2}]}}');
  assert.equal(gone.size, parseJson(textOf(gone)).size);
  assert.deepEqual([...changes(next, gone)], [""]);
  assert.deepEqual([...changes(doc, parseJson('{"plan":1,"x":1}'))], ["plan", "x"]);
  assert.equal(replaced(doc, ["new", "y"], parseJson("1")), undefined);
  assert.equal(replaced(doc, ["none"], undefined), doc);
});

test("a tree is open as deep as fits at first", () => {
  assert.equal(openDepth(doc, 60), 4);
  assert.equal(openDepth(parseJson(JSON.stringify({ a: Array(100).fill(1) })), 60), 0);
  assert.ok(children(doc).length === 2 && idOf(ROOT) === "");
});

test("the last change of a path is that of its newest commit, its expiry that of its newest PUT", () => {
  const put = (revision, path, more) => ({ revision, changes: [{ kind: "state_put", path, ...more }] });
  assert.ok(touchesPath({ kind: "state_merged", path: "" }, "a/b"));
  assert.ok(!touchesPath({ kind: "state_put", path: "ab" }, "a"));
  const commits = [{ revision: 9, changes: [{ kind: "state_set", path: "a" }] }, put(7, "a", { expires_at: "T" }), put(5, "a")];
  assert.deepEqual(lastChange(commits, "a"), { commit: commits[0], expires_at: "T", known: true });
  assert.deepEqual(lastChange([put(8, "a", { expires_at: "T" })], "a/b"), { commit: { revision: 8, changes: [{ kind: "state_put", path: "a", expires_at: "T" }] }, known: true });
  assert.equal(lastChange([put(8, "b")], "a").known, false);
});
