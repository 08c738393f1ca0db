// View State: tree, filter, live changes, edits by compare-and-set.

import assert from "node:assert/strict";
import { describe, board, visit } from "./harness.mjs";

const path = (session, at = "") => `${board(session, "state")}${at && `/${at}`}`;
const row = (t, at) => t.page.locator(`[role=treeitem][data-path=${JSON.stringify(at)}]`);
const gone = (locator) => locator.waitFor({ state: "detached" });

describe("the state is a tree with exact numbers and order, and its places are links", async (t) => {
  await t.server.put(path("tree"), '{"b":{"n":1.50,"big":123456789012345678901234567890},"a/b":{"x":[{"y":true}]},"html":"<script>alert(1)</script>"}');
  await t.go("#/sessions/tree/state");
  await row(t, "b/n").waitFor();
  assert.match(await t.text(row(t, "b/n")), /1\.50/);
  assert.match(await t.text(row(t, "b/big")), /123456789012345678901234567890/);
  assert.match(await t.text(row(t, "html")), /<script>alert\(1\)<\/script>/);
  const names = await t.page.locator("[role=treeitem][aria-level='1'] .key").allInnerTexts();
  assert.deepEqual(names, ["b", "a/b", "html"]);
  await row(t, "a~1b").click();
  assert.match(t.page.url(), /path=a%7E1b|path=a~1b/);
  await t.page.getByText("curl -sS").filter({ hasText: "state/a~1b" }).waitFor();
  await t.go("#/sessions/tree/state?path=a~1b%2Fx&sub=/0/y");
  await t.page.getByText("It has no address of its own").waitFor();
  assert.equal(await row(t, "a~1b/x/0/y").getAttribute("aria-selected"), "true");
});

describe("the tree is used by keyboard", async (t) => {
  await t.server.put(path("keys"), { one: { a: 1, b: { c: 2 } }, two: 3, three: 4 });
  await t.go("#/sessions/keys/state");
  await row(t, "one").waitFor();
  await t.page.getByRole("button", { name: "Collapse all" }).click();
  await gone(row(t, "one/a"));
  const tree = t.page.getByRole("tree");
  await tree.focus();
  const press = async (key, selected) => {
    await t.page.keyboard.press(key);
    await t.page.locator(`[role=treeitem][aria-selected=true][data-path=${JSON.stringify(selected)}]`).waitFor();
  };
  await press("ArrowDown", "one");
  await t.page.keyboard.press("ArrowRight");
  await row(t, "one/a").waitFor();
  await press("ArrowRight", "one/a");
  await press("ArrowDown", "one/b");
  await press("End", "three");
  await press("Home", "one");
  await press("t", "two");
  await press("ArrowUp", "one/b");
  await press("ArrowLeft", "one");
  await t.page.keyboard.press("ArrowLeft");
  await gone(row(t, "one/a"));
});

describe("a filter by path or value shows matches with what is above them", async (t) => {
  await t.server.put(path("filter"), { plan: { title: "Report", steps: ["sum", "write"] }, other: 1 });
  await t.go("#/sessions/filter/state");
  await row(t, "other").waitFor();
  await t.page.getByRole("searchbox").fill("WRITE");
  await gone(row(t, "other"));
  await row(t, "plan/steps/1").waitFor();
  await t.page.getByText("1 match in 6 values").waitFor();
  assert.match(t.page.url(), /text=WRITE/);
  await t.page.getByRole("searchbox").fill("nowhere");
  await t.page.getByText("Nothing matches").waitFor();
});

describe("what changes lights up, and selection and place stay", async (t) => {
  await t.server.put(path("live"), Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`key${i}`, i])));
  await t.go("#/sessions/live/state?path=key200");
  await row(t, "key200").waitFor();
  const top = () => t.page.locator(".state-rows").evaluate((list) => list.scrollTop);
  const before = await top();
  assert.ok(before > 0);
  await t.server.put(path("live", "key201"), "2010");
  await t.page.locator("[data-path=key201].lit", { hasText: "2010" }).waitFor();
  await t.server.del(path("live", "key0"));
  await t.page.getByText("299 values").waitFor();
  assert.equal(await top(), before - 26);
  assert.equal(await row(t, "key200").getAttribute("aria-selected"), "true");
  await t.server.patch(path("live", "key200"), { add: 5 });
  await row(t, "key200").filter({ hasText: "205" }).waitFor();
  await t.server.del(path("live", "key200"));
  await t.page.getByText("This path has no value now").waitFor();
});

describe("a large document reads only what changed, and all of it is reached", async (t) => {
  const groups = Object.fromEntries(Array.from({ length: 300 }, (_, g) => [`g${g}`, Object.fromEntries(Array.from({ length: 100 }, (_, k) => [`key${k}`, k]))]));
  await t.server.put(path("large"), groups);
  const reads = [];
  t.page.on("request", (request) => request.url().includes("/sessions/large/state") && reads.push(new URL(request.url()).pathname));
  await t.go("#/sessions/large/state?path=g7/key3");
  await row(t, "g7/key3").waitFor();
  await t.page.getByText("30,300 values").waitFor();
  await t.page.getByRole("button", { name: "Expand all" }).click();
  await t.page.getByRole("tree").focus();
  await t.page.keyboard.press("End");
  await row(t, "g299/key99").waitFor();
  assert.ok((await t.page.locator("[role=treeitem]").count()) < 120);
  reads.length = 0;
  await t.server.put(path("large", "g299/key99"), '"changed"');
  await row(t, "g299/key99").filter({ hasText: "changed" }).waitFor();
  assert.deepEqual(reads, ["/v1/sessions/large/state/g299/key99"]);
});

describe("an edit shows faults before it is sent, and writes the text as it is", async (t) => {
  await t.server.put(path("edit", "plan/n"), "1");
  await t.go("#/sessions/edit/state?path=plan/n");
  await t.page.getByRole("button", { name: "Edit" }).click();
  const field = t.page.getByLabel("Value as JSON");
  await field.fill('{\n  "a": tru\n}');
  await t.page.getByText("line 2, column 8: expected a value").waitFor();
  assert.ok(await t.page.getByRole("button", { name: "Save" }).isDisabled());
  await field.fill('{"a": 1.50}');
  await t.page.getByRole("button", { name: "Save" }).click();
  await gone(t.page.locator("dialog"));
  await row(t, "plan/n/a").filter({ hasText: "1.50" }).waitFor();
  assert.equal((await t.server.get(path("edit", "plan/n"))).text.trim(), '{"a":1.50}');
});

describe("a lost edit shows both values; one overwrites, takes theirs or goes on", async (t) => {
  const { page, server } = t;
  await server.put(path("race", "x"), '"first"');
  await t.go("#/sessions/race/state?path=x");
  const field = page.getByLabel("Value as JSON");
  const begin = async () => {
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await field.waitFor();
  };
  await begin();
  await field.fill('"mine"');
  await server.put(path("race", "x"), '"theirs"', { "X-Agent-ID": "ExcelAgent" });
  await page.getByRole("alert").filter({ hasText: "The value changed while you edit" }).filter({ hasText: "ExcelAgent" }).waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Somebody else wrote in between").waitFor();
  assert.equal(await t.text(page.getByLabel("Theirs", { exact: true })), '"theirs"');
  assert.equal(await t.text(page.getByLabel("Mine", { exact: true })), '"mine"');
  assert.equal((await server.get(path("race", "x"))).body, "theirs");
  await page.getByRole("button", { name: "Continue editing" }).click();
  assert.equal(await field.inputValue(), '"mine"');
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Overwrite theirs" }).click();
  await gone(page.locator("dialog"));
  assert.equal((await server.get(path("race", "x"))).body, "mine");

  await begin();
  await field.fill('"mine again"');
  await server.put(path("race", "x"), '"theirs again"');
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByRole("button", { name: "Take theirs" }).click();
  assert.equal(await field.inputValue(), '"theirs again"');
  await page.getByRole("button", { name: "Cancel" }).click();
  await gone(page.locator("dialog"));
  assert.equal((await server.get(path("race", "x"))).body, "theirs again");
});

describe("of two pages that edit one leaf the second sees what the first saved", async (t) => {
  await t.server.put(path("leaf", "x"), "1");
  const other = await visit();
  const pages = [t, other];
  const field = ({ page }) => page.getByLabel("Value as JSON");
  for (const one of pages) {
    await one.go("#/sessions/leaf/state?path=x");
    await one.page.getByRole("button", { name: "Edit", exact: true }).click();
  }
  await field(t).fill("2");
  await field(other).fill("3");
  await t.page.getByRole("button", { name: "Save" }).click();
  await gone(t.page.locator("dialog"));
  await other.page.getByRole("alert").filter({ hasText: "The value changed while you edit" }).waitFor();
  await other.page.getByRole("button", { name: "Save" }).click();
  await other.page.getByText("Somebody else wrote in between").waitFor();
  assert.equal((await t.server.get(path("leaf", "x"))).body, 2);
  await other.page.getByRole("button", { name: "Overwrite theirs" }).click();
  await gone(other.page.locator("dialog"));
  await row(t, "x").filter({ hasText: "3" }).waitFor();
  await other.context.close();
  assert.deepEqual(other.wrong, []);
});

describe("members are added, numbers grow, arrays are appended to, paths are deleted", async (t) => {
  const { page, server } = t;
  await server.put(path("small"), { count: 41, list: [1], plan: {} });
  await t.go("#/sessions/small/state?path=plan");
  await page.getByRole("button", { name: "Add a member" }).click();
  await page.getByLabel("Key").fill("a/b");
  await page.getByLabel("Value as JSON").fill("[1.0]");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await row(t, "plan/a~1b").waitFor();
  assert.equal((await server.get(path("small", "plan"))).text.trim(), '{"a/b":[1.0]}');

  await row(t, "count").click();
  await page.getByRole("button", { name: "Add to it" }).click();
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("count is 42 now").waitFor();

  await row(t, "list").click();
  await page.getByRole("button", { name: "Append" }).click();
  await page.getByLabel("Value as JSON").fill('"x"');
  await page.locator("dialog").getByRole("button", { name: "Append" }).click();
  await row(t, "list").filter({ hasText: "[2]" }).waitFor();

  await page.getByRole("button", { name: "Delete" }).click();
  await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
  await gone(row(t, "list"));
  assert.deepEqual(Object.keys((await server.get(path("small"))).body), ["count", "plan"]);
});

describe("a value tells who changed it at last and when it expires", async (t) => {
  await t.server.put(`${path("facts", "lock")}?ttl=1h`, { owner: "WordAgent" }, { "X-Agent-ID": "WordAgent" });
  await t.go("#/sessions/facts/state?path=lock/owner");
  const facts = t.page.locator(".state-detail .facts");
  await facts.getByText("WordAgent").waitFor();
  assert.doesNotMatch(await t.text(facts), /Expires/);
  await row(t, "lock").click();
  await facts.getByText("Expires").waitFor();
  await t.page.getByRole("link", { name: "History" }).click();
  assert.match(decodeURIComponent(t.page.url()), /past\?path=state\/lock/);
});

describe("an empty state says how to write the first value", async (t) => {
  await t.server.post(board("empty", "requests"), { request: "x" });
  await t.go("#/sessions/empty/state");
  await t.page.getByText("The state is empty").waitFor();
  await t.server.put(path("empty", "first"), "1");
  await row(t, "first").waitFor();
});

describe("a token that may only read sees no button that writes", async (t) => {
  await t.server.put(path("reader", "x"), "1");
  const token = { name: "reader", scopes: ["read"] };
  await t.page.route("**/ui/session", (route) => route.fulfill({ json: { tokens_required: true, login: { token } } }));
  await t.go("#/sessions/reader/state?path=x");
  await t.page.getByRole("link", { name: "History" }).waitFor();
  for (const name of ["Edit", "Add to it", "Delete"]) assert.equal(await t.page.getByRole("button", { name }).count(), 0, name);
});
