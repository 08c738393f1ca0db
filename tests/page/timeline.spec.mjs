// The timeline: groups, live entries, filters, the drawer, a restart, hostile items, long sessions.

import assert from "node:assert/strict";
import { board, describe } from "./harness.mjs";

const as = (agent) => ({ "X-Agent-ID": agent });
const group = (t, text) => t.page.locator("[data-group]").filter({ hasText: text });
const bottom = (t) => t.page.locator("#main").evaluate((main) => main.scrollHeight - main.scrollTop - main.clientHeight);

describe("what belongs together is one card, and what comes extends it", async (t) => {
  const session = "groups";
  await t.server.post(board(session, "requests"), { request: "Sum the quarter" }, as("HostAgent"));
  await t.server.post(board(session, "questions"), { question: "Which quarter?" }, as("HostAgent"));
  await t.server.put(board(session, "requests", "1", "claim"), { ttl: "60s" }, as("ExcelAgent"));
  await t.go(`#/sessions/${session}/timeline`);
  const request = group(t, "Sum the quarter");
  await request.getByText(/ExcelAgent · .* left/).waitFor();
  await t.page.locator(".live.live").waitFor();
  const { body } = await t.server.get(board(session, "requests", "1"));
  await t.server.put(board(session, "requests", "1", "done"), { fence: body.claim.fence, result: { sum: 42 } }, as("ExcelAgent"));
  await request.getByText('Done: {"sum":42}').waitFor();
  await t.server.put(board(session, "questions", "1", "answer"), { answer: "the third" });
  await group(t, "Which quarter?").getByText("Answer: the third").waitFor();
  const step = { then: [
    { append: "trajectories", item: { step: 1, thought: "The sheet is open", action: "click(B2)", status: "CONTINUE", cost: 0.02 } },
    { append: "agents/ExcelAgent/memory", item: { step: 1, thought: "The sheet is open", cost: 0.02 } },
  ] };
  await t.server.post(board(session, "transactions"), step, as("ExcelAgent"));
  const card = group(t, "The sheet is open");
  await card.getByText("$0.02").waitFor();
  assert.equal(await card.count(), 1);
  await t.page.keyboard.press("e");
  await t.page.getByText("click(B2)").first().waitFor();
  await t.page.keyboard.press("e");
});

describe("filters are in the address, and an entry opens with its JSON, link and curl", async (t) => {
  const session = "filters";
  await t.server.post(board(session, "requests"), '{"request":"Open the report","n":1.50}', as("HostAgent"));
  await t.server.post(board(session, "trajectories"), { step: 1, thought: "It is open", status: "FINISH" }, as("WordAgent"));
  await t.go(`#/sessions/${session}/timeline`);
  await t.page.getByRole("button", { name: "Filter", exact: true }).click();
  await t.page.getByRole("group", { name: "Kinds" }).getByRole("button", { name: "Steps" }).click();
  await group(t, "Open the report").waitFor({ state: "detached" });
  assert.match(t.page.url(), /kind=step/);
  await t.page.getByRole("button", { name: "Clear filters" }).click();
  await group(t, "Open the report").waitFor();
  await t.page.getByRole("searchbox").fill("it is OPEN");
  await group(t, "Open the report").waitFor({ state: "detached" });
  await t.go(`#/sessions/${session}/timeline?agent=HostAgent`);
  await group(t, "Open the report").getByRole("link", { name: "Open the report" }).click();
  const drawer = t.page.getByRole("complementary", { name: "requests/1" });
  await drawer.getByText("1.50").waitFor();
  assert.match(await t.text(drawer), /curl -sS 'http:\/\/127\.0\.0\.1:\d+\/v1\/sessions\/filters\/requests\/1'/);
  assert.match(t.page.url(), /open=requests%2F1/);
  await t.page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });
});

describe("new entries wait below while one reads, and nothing is missed over a restart", async (t) => {
  const session = "restart";
  const steps = (from, n) => Array.from({ length: n }, (_, i) => ({ step: from + i, thought: `Step number ${from + i}.` }));
  for (const one of steps(0, 60)) await t.server.post(board(session, "trajectories"), one, as("HostAgent"));
  await t.go(`#/sessions/${session}/timeline`);
  await group(t, "Step number 59.").waitFor();
  await t.page.waitForFunction(() => {
    const main = document.querySelector("#main");
    return main.scrollHeight - main.scrollTop - main.clientHeight < 5;
  });
  await t.page.locator("#main").evaluate((main) => (main.scrollTop = 300));
  const seen = t.page.locator("[data-group]").filter({ hasText: "Step number 8." });
  const before = (await seen.boundingBox()).y;
  await t.server.post(board(session, "trajectories"), { step: 60, thought: "Step number 60." }, as("HostAgent"));
  await t.page.getByRole("button", { name: "1 new entry" }).waitFor();
  assert.equal((await seen.boundingBox()).y, before);
  await t.server.restart();
  await t.server.post(board(session, "trajectories"), { step: 61, thought: "Step number 61." }, as("HostAgent"));
  await t.page.getByRole("button", { name: "2 new entries" }).click();
  await group(t, "Step number 61.").waitFor();
  assert.equal(await group(t, "Step number 61.").count(), 1);
  assert.ok((await bottom(t)) < 60);
});

describe("the beginning and the end of a long session are reached", async (t) => {
  const session = "long";
  for (let from = 0; from < 700; from += 1) await t.server.post(board(session, "trajectories"), { step: from, thought: `Thought ${from}.` }, as("HostAgent"));
  await t.go(`#/sessions/${session}/timeline`);
  await group(t, "Thought 699.").waitFor();
  await t.page.keyboard.press("Home");
  await group(t, "Thought 0.").waitFor();
  assert.ok((await t.page.locator("[data-group]").count()) < 400);
  await t.page.keyboard.press("End");
  await group(t, "Thought 699.").waitFor();
  await t.go(`#/sessions/${session}/timeline?around=350`);
  await group(t, "Thought 349.").waitFor();
});

describe("a hostile item is text", async (t) => {
  const session = "hostile <b>&";
  const item = { request: "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>", link: "javascript:window.hacked=1", rtl: "\u202eabc", long: "x".repeat(200_000) };
  await t.server.post(board(session, "requests"), item, as("<i>Agent"));
  await t.go(`#/sessions/${encodeURIComponent(session)}/timeline`);
  await group(t, "<script>window.hacked=1</script>").getByRole("link").first().click();
  await t.page.getByRole("button", { name: /Show all/ }).waitFor();
  assert.equal(await t.page.evaluate(() => window.hacked), undefined);
  assert.equal(await t.page.locator("a[href^='javascript:']").count(), 0);
});

describe("an empty session says how to write to it", async (t) => {
  await t.server.put(board("empty"), {});
  await t.go("#/sessions/empty/timeline");
  await t.page.getByText("The session begins here").or(t.page.getByText("Session created")).first().waitFor();
  await t.go("#/sessions/none/timeline");
  await t.page.getByRole("alert").waitFor();
});
