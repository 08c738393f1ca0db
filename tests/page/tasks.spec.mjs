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
  await row(page, "Collect the figures").getByText("Claimable").waitFor();
  await row(page, "Draw the chart").getByText("waits for #1").waitFor();
  await claim(server, session, first);
  await row(page, "Collect the figures").getByText("Claimed").waitFor();
  await row(page, "Collect the figures").getByText(/min left/).waitFor();
  await end(server, session, first, "done", { result: { rows: 12 } });
  await row(page, "Collect the figures").getByText("Done").waitFor();
  await row(page, "Draw the chart").getByText("Claimable").waitFor();
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
  await one.getByText("no space left <script>").waitFor();
  await one.getByText("1 of 1 attempt failed").waitFor();
  await one.getByRole("button", { name: "Retry" }).click();
  await one.getByText("Claimable").waitFor();
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
  const graph = page.getByRole("group", { name: /^Requests that wait/ });
  await graph.getByRole("link", { name: /^a #1 · Claimable/ }).waitFor();
  assert.equal(await graph.getByRole("link").count(), 5);
  await graph.getByRole("link", { name: /^a #1 · Claimable/ }).focus();
  await page.keyboard.press("ArrowDown");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^b #2 · Claimable/);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^d #4 · Waiting; waits for #3/);
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Request 4" }).waitFor();
  await end(server, session, 1, "done", {});
  await graph.getByRole("link", { name: /^a #1 · Done/ }).waitFor();
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
  await page.waitForFunction((before) => document.querySelector(".tasks-list").scrollTop > before, top);
  await page.getByRole("searchbox", { name: "Find a request" }).fill("task 4321");
  await row(page, "task 4321").waitFor();
  await claim(server, session, 4322);
  await row(page, "task 4321").getByText("Claimed").waitFor();
});
