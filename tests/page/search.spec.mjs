// View Search: results while typing, filters in the address, pages, links.

import assert from "node:assert/strict";
import { describe, board } from "./harness.mjs";

const hits = (t) => t.page.locator(".search-hits > li");

/** Writes entries and waits until the index has them. */
async function write(t, session, log, items, headers) {
  const { body } = await t.server.post(log.startsWith("agents/") ? `${board(session)}/${log}` : board(session, log), items, headers);
  await t.server.get(`/v1/search?q=anything&session=${session}&min_revision=${body.revision}&wait=10s`);
}

describe("words are found as one types, in all sessions or one", async (t) => {
  await write(t, "zoo-a", "requests", [{ request: "Feed the Quagga <b>now</b> & then" }], { "X-Agent-ID": "Keeper" });
  await write(t, "zoo-b", "agents/Vet/memory", [{ thought: "The quagga sleeps" }]);
  await t.go("#/search");
  await t.page.getByText("the words in this order").waitFor();
  await t.page.getByRole("searchbox").fill("quagga");
  await hits(t).nth(1).waitFor();
  assert.equal(await hits(t).count(), 2);
  const hit = hits(t).filter({ hasText: "zoo-a" });
  assert.match(await t.text(hit), /Feed the Quagga <b>now<\/b> & then/);
  assert.equal(await t.text(hit.locator("mark")), "Quagga");
  await hit.getByText("Keeper").waitFor();
  await t.page.getByRole("textbox", { name: "Session" }).fill("zoo-b");
  await hit.waitFor({ state: "detached" });
  assert.match(t.page.url(), /q=quagga&in=zoo-b/);
  await hits(t).getByText("agents/Vet/memory/1").waitFor();
  await t.page.getByRole("button", { name: "Clear filters" }).click();
  await t.page.getByLabel("Log").selectOption("memory");
  await hit.waitFor({ state: "detached" });
});

describe("a hit opens its entry in the timeline", async (t) => {
  await write(t, "zoo-c", "requests", [{ request: "Weigh the okapi" }]);
  await t.go("#/search?q=okapi");
  await hits(t).getByRole("link", { name: "Weigh the okapi" }).click();
  assert.match(decodeURIComponent(t.page.url()), /sessions\/zoo-c\/timeline\?open=requests\/1/);
  await t.page.getByRole("complementary", { name: "requests/1" }).waitFor();
});

describe("more hits come by pages, none twice", async (t) => {
  await write(t, "zoo-d", "trajectories", Array.from({ length: 60 }, (_, step) => ({ step, thought: `A tapir at ${step}` })));
  await t.go("#/search?q=tapir");
  await t.page.getByText("The first 25 hits").waitFor();
  await t.page.getByRole("button", { name: "More hits" }).click();
  await t.page.getByText("The first 50 hits").waitFor();
  await t.page.getByRole("button", { name: "More hits" }).click();
  await t.page.getByText("60 hits, best first").waitFor();
  assert.equal(new Set(await hits(t).locator("a.search-snippet").evaluateAll((links) => links.map((link) => link.href))).size, 60);
});

describe("a query that is not complete is no failure, and nothing found is told", async (t) => {
  await t.go("#/search?q=%22not+closed");
  await t.page.getByText("opening quotation mark without a closing one").waitFor();
  assert.equal(await t.page.getByRole("alert").count(), 0);
  await t.page.getByRole("searchbox").fill("xyzzyplugh");
  await t.page.getByText("Nothing found").waitFor();
});

describe("a hit begins with what its entry says, and names the forks that have it too", async (t) => {
  await write(t, "zoo-e", "trajectories", [{ step: 21, agent: "Keeper", subtask: "Feed the numbat", thought: "The bowl is empty.", cost: 0.011 }], { "X-Agent-ID": "Keeper" });
  await t.server.post(board("zoo-e", "fork"), { to: "zoo-f" });
  const { body } = await t.server.put(board("zoo-f", "state", "x"), 1);
  await t.server.get(`/v1/search?q=anything&session=zoo-f&min_revision=${body.revision}&wait=10s`);
  await t.go("#/search?q=numbat");
  const link = hits(t).getByRole("link", { name: "The bowl is empty.", exact: true });
  await link.waitFor();
  assert.equal(await hits(t).count(), 1);
  await t.page.getByText("1 hit, best first").waitFor();
  assert.match(await t.text(hits(t)), /^The bowl is empty\.\n+21 Keeper Feed the numbat[\s\S]*zoo-[ef]\n+zoo-[ef]/);
  assert.equal(await t.text(hits(t).locator("mark")), "numbat");
  await link.click();
  assert.match(decodeURIComponent(t.page.url()), /sessions\/zoo-[ef]\/timeline\?open=trajectories\/1/);
});

describe("a hit within a run of letters is marked", async (t) => {
  await write(t, "zoo-g", "requests", [{ request: "打开文件夹" }, { request: "온라인게임을 했다" }]);
  for (const [word, text] of [["文件", "打开文件夹"], ["게임", "온라인게임을 했다"]]) {
    const read = t.page.waitForResponse((answer) => answer.url().includes("/zoo-g/requests?"));
    await t.go(`#/search?in=zoo-g&q=${encodeURIComponent(word)}`);
    await read;
    const link = hits(t).getByRole("link", { name: text, exact: true });
    await link.locator("mark").first().waitFor();
    assert.equal((await link.locator("mark").allInnerTexts()).join(""), word);
  }
});

describe("a numbered request is read for its hit, and an entry that is gone leaves what the hit quotes", async (t) => {
  await write(t, "zoo-h", "requests", [{ note: "Not this one", request_7: "Wash the pangolin" }]);
  await t.go("#/search?q=pangolin");
  await hits(t).getByRole("link", { name: "Wash the pangolin", exact: true }).waitFor();
  await t.page.route("**/zoo-h/requests?*", (route) => route.fulfill({ json: { entries: [], more: false, next: null } }));
  const read = t.page.waitForResponse((answer) => answer.url().includes("/zoo-h/requests?"));
  await t.page.reload();
  await read;
  await hits(t).getByRole("link", { name: "Not this one Wash the pangolin", exact: true }).waitFor();
});

describe("search that is switched off is explained", async (t) => {
  const detail = "search is off on this server (--search off)";
  await t.page.route("**/v1/search?*", (route) => route.fulfill({ status: 404, contentType: "application/problem+json", body: JSON.stringify({ status: 404, code: "route-not-found", title: "Route not found", detail }) }));
  await t.go("#/search?q=word");
  await t.page.getByText("Search is switched off on this server").waitFor();
});
