// Timeline: groups, live entries, filters, the drawer, a restart, hostile items, long sessions.

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
});

describe("a session that does not exist is an error, and nothing else", async (t) => {
  await t.go("#/sessions/none/timeline");
  await t.page.getByRole("alert").getByText("session 'none' does not exist").waitFor();
  assert.equal(await t.page.getByText("Nothing has happened yet").count(), 0);
  assert.equal(await t.page.getByRole("complementary").count(), 0);
});

const PNG = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"), (one) => one.charCodeAt(0));
const shot = (t, session, path) => t.server.post(`${board(session, "screenshots")}?image_path=${path}`, PNG, { ...as("AppAgent"), "Content-Type": "image/png" });

describe("a screenshot stands with the step that names it, else by itself", async (t) => {
  const session = "links";
  const step = (n, more) => t.server.post(board(session, "trajectories"), { step: n, thought: `Thought ${n}.`, ...more }, as("AppAgent"));
  await step(1);
  await shot(t, session, "one");
  await step(2, { screenshot: 1 });
  await step(3, { image_path: "logs/3.png" });
  await shot(t, session, "logs/3.png");
  await shot(t, session, "alone");
  await t.go(`#/sessions/${session}/timeline`);
  await group(t, "alone").getByRole("img", { name: "alone" }).waitFor();
  const images = async (text) => group(t, text).locator(".shot img").evaluateAll((all) => all.map((one) => one.alt));
  assert.deepEqual([await images("Thought 1."), await images("Thought 2."), await images("Thought 3.")], [[], ["one"], ["logs/3.png"]]);
  // A live step takes its screenshot from the row above.
  await step(4, { screenshot: "alone" });
  await group(t, "Thought 4.").getByRole("img", { name: "alone" }).waitFor();
  assert.equal(await t.page.getByRole("img", { name: "alone" }).count(), 1);
});

const titles = (t) => t.page.locator("[data-group] a.title").allInnerTexts();

describe("steps that name a screenshot without an image are shown without it", async (t) => {
  const session = "no-image";
  await t.server.post(board(session, "screenshots"), { image_path: "wall", image_str: "a view of the wall" }, as("AppAgent"));
  for (const n of [1, 2]) await t.server.post(board(session, "trajectories"), { step: n, thought: `Thought ${n}.`, screenshot: 1 }, as("AppAgent"));
  await t.go(`#/sessions/${session}/timeline`);
  await group(t, "Thought 1.").or(t.page.getByRole("alert")).first().waitFor();
  assert.deepEqual((await titles(t)).slice(-2), ["Thought 1.", "Thought 2."]);
  assert.equal(await t.page.locator(".shot").count(), 0);
});

describe("steps that wait for one screenshot show it all", async (t) => {
  const session = "two-wait";
  for (const n of [1, 2]) await t.server.post(board(session, "trajectories"), { step: n, thought: `Thought ${n}.`, screenshot: 1 }, as("AppAgent"));
  await t.go(`#/sessions/${session}/timeline`);
  await group(t, "Thought 2.").waitFor();
  await t.page.locator(".live.live").waitFor();
  await shot(t, session, "late");
  for (const n of [1, 2]) await group(t, `Thought ${n}.`).getByRole("img", { name: "late" }).waitFor();
});

describe("after a failure and another try the timeline follows its end", async (t) => {
  const session = "retried";
  const thought = (n) => `Thought ${n}. ${"It goes on and on. ".repeat(40)}`;
  for (let n = 0; n < 70; n += 1) await t.server.post(board(session, "trajectories"), { step: n, thought: thought(n) }, as("HostAgent"));
  const path = `**${board(session)}`;
  const busy = { status: 503, contentType: "application/problem+json", body: JSON.stringify({ status: 503, code: "overloaded", title: "Overloaded" }) };
  await t.page.route(path, async (route) => {
    // The failure comes when the list is there already.
    await t.page.locator(".timeline-list").waitFor();
    await route.fulfill(busy);
  });
  await t.go(`#/sessions/${session}/timeline`);
  const again = t.page.locator(".timeline-list").getByRole("button", { name: "Try again" });
  await again.waitFor();
  assert.equal(await t.page.getByRole("searchbox").count(), 0);
  await t.page.unroute(path);
  await again.click();
  await group(t, "Thought 69.").waitFor();
  await t.page.waitForFunction(() => {
    const main = document.querySelector("#main");
    return main.scrollHeight > main.clientHeight && main.scrollHeight - main.scrollTop - main.clientHeight < 5;
  });
  // What grows late is followed too.
  await t.page.locator("[data-group]").last().evaluate((card) => (card.style.minHeight = "1500px"));
  await t.page.waitForFunction(() => {
    const main = document.querySelector("#main");
    return main.scrollHeight - main.scrollTop - main.clientHeight < 5;
  });
});

describe("before the history that is kept, a timeline has the entries of the logs", async (t) => {
  const session = "past-of-fork";
  await t.server.post(board(session, "requests"), { request: "Open the report" }, as("HostAgent"));
  await t.server.post(board(session, "requests"), { request: "Print it" }, as("HostAgent"));
  await t.server.post(board(session, "questions"), { question: "Which printer?" }, as("AppAgent"));
  const { claim } = (await t.server.put(board(session, "requests", "1", "claim"), { ttl: "60s" }, as("AppAgent"))).body;
  await t.server.put(board(session, "requests", "1", "done"), { fence: claim.fence, result: "opened" }, as("AppAgent"));
  await t.server.put(board(session, "questions", "1", "answer"), { answer: "the third" }, as("User"));
  await t.server.post(board(session, "agents", "AppAgent", "memory"), { step: 1, thought: "Remembered" }, as("AppAgent"));
  await t.server.post(board(session, "trajectories"), Array.from({ length: 600 }, (_, n) => ({ step: n, thought: `Thought ${n}.` })), as("AppAgent"));
  await t.server.post(`${board(session, "questions")}?expires=1h`, { question: "How many copies?" }, as("AppAgent"));
  await t.server.post(board(session, "fork"), { to: "fork-of-it" });
  await t.server.post(board(session, "purge"));
  for (const name of [session, "fork-of-it"]) {
    await t.server.post(board(name, "trajectories"), { step: 600, thought: "Thought 600." }, as("AppAgent"));
    const second = (await t.server.put(board(name, "requests", "2", "claim"), { ttl: "60s" }, as("AppAgent"))).body;
    await t.server.put(board(name, "requests", "2", "done"), { fence: second.claim.fence, result: "printed" }, as("AppAgent"));
    await t.go(`#/sessions/${name}/timeline`);
    await group(t, "Thought 600.").waitFor();
    await t.page.keyboard.press("Home");
    await t.page.getByText(/^Changes up to revision \d+ are not kept/).waitFor();
    await group(t, "Open the report").getByText('Done: opened').waitFor();
    assert.deepEqual((await titles(t)).slice(0, 5), ["Open the report", "Print it", "Which printer?", "Remembered", "Thought 0."]);
    await group(t, "Which printer?").getByText("Answer: the third").waitFor();
    await t.page.keyboard.press("End");
    await group(t, "How many copies?").getByText("Open until").waitFor();
    await t.page.keyboard.press("Home");
    // What came since joins the row that the log gave.
    await group(t, "Print it").getByText("Done: printed").waitFor();
    await t.page.keyboard.press("End");
    await group(t, "Thought 600.").waitFor();
    const shown = await titles(t);
    assert.deepEqual(shown, [...new Set(shown)]);
  }
});

describe("a timeline that is left while it reads reports nothing", async (t) => {
  const session = "left-early";
  await t.server.post(board(session, "requests"), { request: "Open the report" }, as("HostAgent"));
  await t.server.post(board(session, "purge"));
  await t.server.post(board(session, "requests"), { request: "Print it" }, as("HostAgent"));
  // Reads of the logs of before never end.
  await t.page.route(/[?&]at=/, () => {});
  const aborted = t.page.waitForEvent("requestfailed", (request) => /[?&]at=/.test(request.url()));
  await t.go(`#/sessions/${session}/timeline`);
  await group(t, "Print it").waitFor();
  await t.page.keyboard.press("Home");
  await t.go("#/sessions");
  await aborted;
  await t.page.evaluate(() => new Promise((resolve) => setTimeout(resolve)));
});
