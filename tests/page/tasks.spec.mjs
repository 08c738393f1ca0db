// Tasks: states, attempts, the graph of dependencies, and a long list.

import assert from "node:assert/strict";
import { describe, board } from "./harness.mjs";

async function request(server, session, item, query = "") {
  return (await server.post(`${board(session, "requests")}${query}`, item, { "X-Agent-ID": "HostAgent" })).body.entries[0].seq;
}

async function claim(server, session, seq, agent = "LinuxAgent") {
  const path = board(session, "requests", String(seq), "claim");
  return (await server.put(path, { ttl: "10m" }, { "X-Agent-ID": agent })).body.claim.fence;
}

async function end(server, session, seq, how, body) {
  const fence = await claim(server, session, seq);
  await server.put(board(session, "requests", String(seq), how), { fence, ...body }, { "X-Agent-ID": "LinuxAgent" });
}

const row = (page, text) => page.getByRole("listitem").filter({ hasText: text });

describe("requests stand under their states, live", async (t) => {
  const session = "tasks-states";
  const { server, page } = t;
  const first = await request(server, session, { request: "Collect the figures" });
  await request(server, session, { request: "Draw the chart" }, `?after=${first}`);
  await t.go(`#/sessions/${session}/tasks`);
  await row(page, "Collect the figures").getByText("Pending").waitFor();
  await row(page, "Draw the chart").getByText("waits for #1").waitFor();
  await claim(server, session, first);
  await row(page, "Collect the figures").getByText("Claimed").waitFor();
  await row(page, "Collect the figures").getByText(/min left/).waitFor();
  await end(server, session, first, "done", { result: { rows: 12 } });
  await row(page, "Collect the figures").getByText("Done").waitFor();
  await row(page, "Draw the chart").getByText("Pending").waitFor();
  await page.getByRole("button", { name: "Done 1" }).click();
  await row(page, "Draw the chart").waitFor({ state: "detached" });
  assert.match(page.url(), /state=done/);
});

describe("a failed request shows its reason and is tried again", async (t) => {
  const session = "tasks-failed";
  const { server, page } = t;
  const seq = await request(server, session, { request: "Archive the data" }, "?attempts=1");
  await end(server, session, seq, "failed", { reason: "no space left <script>" });
  await t.go(`#/sessions/${session}/tasks?request=${seq}`);
  const one = page.getByRole("region", { name: `Request ${seq}` });
  await one.locator("section.outcome").getByText("no space left <script>").waitFor();
  await one.getByText("1 of 1 attempt failed").waitFor();
  await one.getByRole("button", { name: "Retry" }).click();
  await one.getByText("Pending").waitFor();
  await one.getByText("0 of 1 attempt failed").waitFor();
  assert.equal((await server.get(board(session, "requests", String(seq)))).body.failed, undefined);
});

describe("a request is made as text and as JSON, to wait for others", async (t) => {
  const session = "tasks-make";
  const { server, page } = t;
  await t.go(`#/sessions/${session}/tasks`);
  await page.getByRole("alert").getByText("session-not-found").waitFor();
  await page.getByRole("button", { name: "New request" }).click();
  await page.getByRole("dialog").getByLabel("Request", { exact: true }).fill("Open the report");
  await page.getByRole("dialog").getByLabel("Request", { exact: true }).press("Control+Enter");
  await page.getByRole("region", { name: "Request 1" }).waitFor();
  await page.getByRole("alert").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "New request after this" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("tab", { name: "JSON object" }).click();
  await dialog.getByLabel("Item").fill("[1]");
  await dialog.getByText("A request is one JSON object.").waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Make request" }).isDisabled(), true);
  await dialog.getByLabel("Item").fill('{"device":"linux","n":1.50}');
  await dialog.getByLabel("Attempts (optional)").fill("3");
  await dialog.getByRole("button", { name: "Make request" }).click();
  await page.getByRole("region", { name: "Request 2" }).getByText("0 of 3 attempts failed").waitFor();
  const made = await server.get(board(session, "requests", "2"));
  assert.deepEqual([made.body.after, made.body.attempts], [[1], 3]);
  assert.match(made.text, /"n":1\.50/);
  assert.match(await t.text(page.getByRole("region", { name: "Request 2" }).getByLabel("JSON")), /"n": 1\.50/);
});

describe("the graph is gone through by keyboard", async (t) => {
  const session = "tasks-graph";
  const { server, page } = t;
  for (const [text, query] of [["a", ""], ["b", ""], ["c", "?after=1,2"], ["d", "?after=3"], ["e", "?after=1"], ["alone", ""]]) {
    await request(server, session, { request: text }, query);
  }
  await t.go(`#/sessions/${session}/tasks?show=graph`);
  const graph = page.getByRole("group", { name: /^Requests and what/ });
  await graph.getByRole("link", { name: /^a #1 · Pending/ }).waitFor();
  assert.equal(await graph.getByRole("link").count(), 6);
  await graph.getByRole("link", { name: /^a #1 · Pending/ }).focus();
  await page.keyboard.press("ArrowDown");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^b #2 · Pending/);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^d #4 · Waiting; waits for #3/);
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Request 4" }).waitFor();
  await end(server, session, 1, "done", {});
  await graph.getByRole("link", { name: /^a #1 · Done/ }).waitFor();
  // One without links stands below those with links.
  await page.getByRole("button", { name: "All requests" }).click();
  const place = async (name) => (await graph.getByRole("link", { name }).boundingBox()).y;
  assert.ok((await place(/^alone #6/)) > Math.max(await place(/^b #2/), await place(/^e #5/)));
});

describe("a request without links is in the graph", async (t) => {
  const session = "tasks-alone";
  await request(t.server, session, { request: "only one" });
  await t.go(`#/sessions/${session}/tasks?show=graph`);
  await t.page.getByRole("link", { name: /^only one #1 · Pending/ }).waitFor();
});

describe("states are said in words, live", async (t) => {
  const session = "tasks-words";
  const { server, page } = t;
  await request(server, session, { request: "Fetch the data" }, "?attempts=3&priority=7");
  await request(server, session, { request: "Draw the chart" }, "?after=1");
  await request(server, session, { request: "Send the mail" }, "?not_before=1h&deadline=2h");
  await request(server, session, { request: "Soon" }, "?not_before=5s");
  await t.go(`#/sessions/${session}/tasks`);
  await row(page, "Fetch the data").getByText("priority 7").waitFor();
  await row(page, "Send the mail").getByText("Delayed").waitFor();
  await row(page, "Send the mail").getByText(/^not before (\w+ \w+, )?\d\d:\d\d:\d\d$/).waitFor();
  await end(server, session, 1, "failed", { reason: "no network" });
  await row(page, "Fetch the data").getByText("1 of 3 failed: no network").waitFor();
  await claim(server, session, 1);
  await row(page, "Fetch the data").getByText("LinuxAgent").waitFor();
  await server.put(board(session, "requests", "1", "cancelled"), { reason: "not needed" });
  await row(page, "Fetch the data").getByText("to be cancelled: not needed").waitFor();
  await server.put(board(session, "requests", "1", "cancelled"), {});
  await row(page, "Fetch the data").getByText("Cancelled", { exact: true }).waitFor();
  await row(page, "Draw the chart").getByText("waits for #1, which was cancelled").waitFor();
  await row(page, "Soon").getByText("Pending").waitFor();
  await server.post(board(session, "requests", "1", "retry"));
  await row(page, "Draw the chart").getByText("waits for #1", { exact: true }).waitFor();
});

describe("past attempts say who, how long, how and why", async (t) => {
  const session = "tasks-attempts";
  const { server, page } = t;
  await request(server, session, { request: "Print it" });
  await end(server, session, 1, "failed", { reason: { code: 3, text: "<b>jam</b>" } });
  await claim(server, session, 1, "MacAgent");
  await server.del(board(session, "requests", "1", "claim"), { "X-Agent-ID": "MacAgent" });
  await t.go(`#/sessions/${session}/tasks?request=1`);
  const attempts = page.getByRole("region", { name: "Past attempts" }).getByRole("listitem");
  await attempts.nth(1).waitFor();
  assert.match(await t.text(attempts.nth(0)), /^Released\s+MacAgent\s+after \d/);
  assert.match(await t.text(attempts.nth(1)), /^Failed\s+LinuxAgent\s+after \d[^]*\{"code":3,"text":"<b>jam<\/b>"\}$/);
});

describe("a request is cancelled with a reason, and tried again", async (t) => {
  const session = "tasks-cancel";
  const { server, page } = t;
  await request(server, session, { request: "Mail the list" });
  await claim(server, session, 1);
  await t.go(`#/sessions/${session}/tasks?request=1`);
  const one = page.getByRole("region", { name: "Request 1" });
  await one.getByRole("button", { name: "Cancel", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Cancel request 1" });
  await dialog.getByText("that agent is asked to stop").waitFor();
  await dialog.getByLabel("Reason (optional)").fill("wrong list");
  await dialog.getByLabel("Your name (optional)").fill("Zoë");
  await dialog.getByRole("button", { name: "Cancel request" }).click();
  await dialog.waitFor({ state: "detached" });
  await one.getByRole("heading", { name: /^To be cancelled/ }).waitFor();
  const { cancel } = (await server.get(board(session, "requests", "1"))).body;
  assert.deepEqual([cancel.agent, cancel.reason], ["Zoë", "wrong list"]);
  await one.getByRole("button", { name: "Cancel now" }).click();
  const again = page.getByRole("dialog", { name: "Cancel request 1" });
  assert.equal(await again.getByLabel("Your name (optional)").inputValue(), "Zoë");
  await again.getByRole("button", { name: "Cancel request" }).click();
  await one.getByRole("heading", { name: /^Cancelled/ }).waitFor();
  await one.getByText("wrong list").waitFor();
  assert.equal(await one.getByRole("button", { name: "Cancel" }).count(), 0);
  await one.getByRole("button", { name: "Retry" }).click();
  await one.getByText("Pending").waitFor();
});

describe("a result in review is found, refused and accepted", async (t) => {
  const session = "tasks-review";
  const { server, page } = t;
  await request(server, session, { request: "Write the summary" }, "?review=true&attempts=3");
  await request(server, session, { request: "Something else" });
  await end(server, session, 1, "done", { result: "draft" });
  await t.go(`#/sessions/${session}/timeline`);
  const found = page.getByRole("complementary", { name: "Overview" }).locator("section").filter({ hasText: "In review" });
  await found.getByRole("link", { name: "Write the summary" }).waitFor();
  await found.getByRole("link", { name: "In review" }).click();
  await page.getByRole("button", { name: "In review 1", pressed: true }).waitFor();
  await row(page, "Something else").waitFor({ state: "detached" });
  await row(page, "Write the summary").getByRole("link").click();
  const one = page.getByRole("region", { name: "Request 1" });
  await one.getByRole("heading", { name: /^Result in review/ }).waitFor();
  await one.getByText("draft").waitFor();
  await one.getByRole("button", { name: "Refuse" }).click();
  const refuse = page.getByRole("dialog", { name: "Refuse the result of request 1" });
  await refuse.getByLabel("Reason").fill("too short");
  await refuse.getByLabel(/^Your name/).fill("LinuxAgent");
  await refuse.getByRole("button", { name: "Refuse result" }).click();
  await refuse.getByRole("alert").getByText("403 · forbidden").waitFor();
  await refuse.getByLabel(/^Your name/).fill("Eva");
  await refuse.getByRole("button", { name: "Refuse result" }).click();
  await refuse.waitFor({ state: "detached" });
  await one.getByText("1 of 3 failed: too short").waitFor();
  await end(server, session, 1, "done", { result: "whole text" });
  await one.getByRole("button", { name: "Accept" }).click();
  const accept = page.getByRole("dialog", { name: "Accept the result of request 1" });
  assert.equal(await accept.getByLabel(/^Your name/).inputValue(), "Eva");
  await accept.getByRole("button", { name: "Accept result" }).click();
  await one.getByText("Accepted by").waitFor();
  const { done } = (await server.get(board(session, "requests", "1"))).body;
  assert.deepEqual([done.verdict.agent, done.verdict.reason, done.result], ["Eva", undefined, "whole text"]);
  await t.go(`#/sessions/${session}/timeline`);
  for (const text of ["For review: draft", "Refused: too short", "For review: whole text", "Accepted"]) await page.getByText(text, { exact: true }).waitFor();
});

describe("a reader sees a result in review without buttons", async (t) => {
  const session = "tasks-reader";
  await request(t.server, session, { request: "Write it" }, "?review=true");
  await end(t.server, session, 1, "done", { result: "draft" });
  await t.page.route("**/ui/session", (route) => route.fulfill({ json: { tokens_required: true, login: { token: { name: "reader", scopes: ["read"] } } } }));
  await t.go(`#/sessions/${session}/tasks?request=1`);
  const one = t.page.getByRole("region", { name: "Request 1" });
  await one.getByText("draft").waitFor();
  for (const name of ["Accept", "Refuse", "Cancel"]) assert.equal(await one.getByRole("button", { name, exact: true }).count(), 0);
});

describe("ten thousand requests are a windowed list", async (t) => {
  const session = "tasks-many";
  const { server, page } = t;
  for (let i = 0; i < 10; i += 1) {
    await server.post(board(session, "requests"), Array.from({ length: 1000 }, (_, n) => ({ request: `task ${i * 1000 + n}` })));
  }
  await t.go(`#/sessions/${session}/tasks`);
  await page.getByRole("button", { name: "All 10,000" }).waitFor();
  assert.ok((await page.getByRole("listitem").count()) < 100);
  await page.getByRole("list", { name: "Requests" }).evaluate((list) => (list.scrollTop = list.scrollHeight));
  await page.getByText("task 0", { exact: true }).waitFor();
  // What is seen stays in its place while newer requests come.
  const list = page.getByRole("list", { name: "Requests" });
  const top = await list.evaluate((element) => element.scrollTop);
  await request(server, session, { request: "task 10000" });
  await page.getByRole("button", { name: "All 10,001" }).waitFor();
  await page.waitForFunction((before) => document.querySelector(".list").scrollTop > before, top);
  await page.getByRole("searchbox", { name: "Find a request" }).fill("task 4321");
  await row(page, "task 4321").waitFor();
  await claim(server, session, 4322);
  await row(page, "task 4321").getByText("Claimed").waitFor();
});
