// View Past: the slider, boards at revisions, changes, comparisons, histories of paths, fork and restore.

import assert from "node:assert/strict";
import { describe, board } from "./harness.mjs";

const fresh = (name) => `${name}-${process.pid}`;
const as = (agent) => ({ "X-Agent-ID": agent });

/** A session of 8 commits: an agent, a request, five values, a failed request; "middle" names revision 5. */
async function filled(t, session) {
  await t.server.put(board(session, "agents", "HostAgent"), { type: "HostAgent", status: "CONTINUE" }, as("HostAgent"));
  await t.server.post(board(session, "requests"), [{ request: "Open the report" }], as("HostAgent"));
  for (const x of [1, 2, 3]) await t.server.put(board(session, "state", "plan", "x"), x, as(x === 2 ? "AppAgent" : "HostAgent"));
  await t.server.post(board(session, "checkpoints"), { name: "middle" });
  await t.server.post(board(session, "requests"), [{ request: "Print the report" }], as("HostAgent"));
  await t.server.put(board(session, "state", "plan", "x"), 4, as("HostAgent"));
}

const slider = (t) => t.page.getByRole("slider", { name: "Revision" });
const region = (t, name) => t.page.getByRole("region", { name, exact: true });

describe("the slider shows the board of each revision, by keyboard and by address", async (t) => {
  const session = fresh("slider");
  await filled(t, session);
  await t.go(`#/sessions/${session}/past?at=4`);
  await region(t, "requests").getByText("Open the report").waitFor();
  assert.equal(await region(t, "requests").getByText("Print the report").count(), 0);
  await t.page.getByLabel("JSON").getByText("2", { exact: true }).waitFor();
  await region(t, "History").getByText("AppAgent").waitFor();
  assert.match(await slider(t).getAttribute("aria-valuetext"), /^revision 4, .*by AppAgent$/);
  await slider(t).focus();
  await t.page.keyboard.press("ArrowRight");
  await t.page.getByLabel("JSON").getByText("3", { exact: true }).waitFor();
  await t.page.waitForURL(/at=5/);
  await t.page.keyboard.press("End");
  await region(t, "requests").getByText("Print the report").waitFor();
  await t.page.waitForURL((url) => !/at=/.test(url.hash));
  // The present board is live.
  await t.server.post(board(session, "requests"), [{ request: "One more" }]);
  await region(t, "requests").getByText("One more").waitFor();
  await t.go(`#/sessions/${session}/past?at=middle`);
  await t.page.getByText(/^of \d/).waitFor();
  assert.ok(["5", "6"].includes(await slider(t).inputValue()));
});

describe("checkpoints and failures are marks that one jumps to", async (t) => {
  const session = fresh("marks");
  await filled(t, session);
  const { claim } = (await t.server.put(board(session, "requests", "1", "claim"), { ttl: "60s" }, as("HostAgent"))).body;
  await t.server.put(board(session, "requests", "1", "failed"), { fence: claim.fence, reason: "no paper" }, as("HostAgent"));
  const { revision } = (await t.server.get(board(session))).body;
  await t.server.patch(board(session, "agents", "HostAgent"), { status: "FAIL" }, as("HostAgent"));
  await t.server.put(board(session, "state", "end"), true);
  await t.go(`#/sessions/${session}/past`);
  await t.page.getByText("1 checkpoint", { exact: true }).waitFor();
  await t.page.getByText("2 failures").waitFor();
  await slider(t).focus();
  await t.page.keyboard.press("[");
  await t.page.waitForURL(new RegExp(`at=${revision + 1}$`));
  await t.page.getByRole("button", { name: "Mark", exact: true }).first().click();
  await t.page.waitForURL(new RegExp(`at=${revision}$`));
});

describe("the changes of a range show what was before and after", async (t) => {
  const session = fresh("changes");
  await filled(t, session);
  await t.go(`#/sessions/${session}/past?from=3&to=8`);
  const changes = region(t, "Changes");
  await changes.getByText("2 differences from revision 3 to 8").waitFor();
  const text = await changes.innerText();
  assert.match(text, /added\s+requests\/2[\s\S]*Print the report/);
  assert.match(text, /changed\s+state\/plan\/x[\s\S]*−\s*1\s*\+\s*4/);
  await t.page.getByLabel("From revision or checkpoint").fill("8");
  await t.page.keyboard.press("Enter");
  await t.page.getByText("Nothing differs").waitFor();
});

describe("a request says its state in each table, and what changed beside its item", async (t) => {
  const session = fresh("states");
  await filled(t, session);
  const { claim } = (await t.server.put(board(session, "requests", "1", "claim"), { ttl: "60s" }, as("AppAgent"))).body;
  await t.server.put(board(session, "requests", "1", "done"), { fence: claim.fence, result: { pages: 3 } }, as("AppAgent"));
  await t.server.put(board(session, "requests", "2", "claim"), { ttl: "60s" }, as("AppAgent"));
  await t.server.post(`${board(session, "requests")}?after=2`, { request: "Staple it" });
  await t.server.post(board(session, "requests"), { request: "File it" });
  await t.go(`#/sessions/${session}/past?from=8`);
  const changes = region(t, "Changes");
  await changes.getByText(/^\d+ differences from revision 8/).waitFor();
  assert.match(await changes.innerText(), /changed\s+requests\/1\s+Done\s+AppAgent\s+Open the report\s+Done: {"pages":3}/);
  assert.match(await changes.innerText(), /changed\s+requests\/2\s+Claimed\s+AppAgent\s+Print the report\s+The item stayed the same/);
  assert.match(await changes.innerText(), /added\s+requests\/3\s+Waiting\s+waits for #2/);
  await t.go(`#/sessions/${session}/past`);
  const states = async () => (await region(t, "requests").locator(".task-state").allInnerTexts()).join(" ");
  await region(t, "requests").getByText("File it").waitFor();
  assert.equal(await states(), "Pending Waiting Claimed Done");
  await t.go(`#/sessions/${session}/past?at=8&with=${session}@`);
  await region(t, "requests").getByText("File it").waitFor();
  assert.equal(await states(), "Pending Waiting Pending Claimed Pending Done");
  await t.go(`#/sessions/${session}/past?open=requests%2F1`);
  await t.page.getByRole("complementary", { name: "requests/1" }).locator(".task-state").getByText("Done").waitFor();
});

describe("a path's history has each value with its author", async (t) => {
  const session = fresh("path");
  await filled(t, session);
  await t.go(`#/sessions/${session}/past?path=state/plan/x`);
  const found = region(t, "History of a path");
  await found.getByText("4 changes").waitFor();
  await found.getByRole("listitem").nth(3).getByText("+").waitFor();
  // Each change reads its own values.
  await found.getByRole("listitem").nth(1).getByLabel("Changed value").waitFor();
  assert.match(await found.getByRole("listitem").nth(1).innerText(), /Revision 4[\s\S]*AppAgent[\s\S]*−\s*1\s*\+\s*2/);
  await t.page.getByLabel("Path", { exact: true }).fill("requests/1");
  await t.page.keyboard.press("Enter");
  await found.getByText("1 change", { exact: true }).waitFor();
  await found.getByText("Open the report").waitFor();
  await t.page.getByLabel("Path", { exact: true }).fill("nonsense");
  await t.page.keyboard.press("Enter");
  await t.page.getByText("Not a path").waitFor();
});

describe("one forks a revision, compares the fork, and compacted history is explained", async (t) => {
  const session = fresh("fork");
  const fork = `${session}-b`;
  await filled(t, session);
  await t.go(`#/sessions/${session}/past?at=4`);
  await t.page.getByRole("button", { name: "Fork" }).click();
  const dialog = t.page.getByRole("dialog");
  await dialog.getByLabel("Name of the new session").fill(session);
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await dialog.getByRole("alert").waitFor();
  await dialog.getByLabel("Name of the new session").fill(fork);
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await t.page.waitForURL(new RegExp(`sessions/${fork}/timeline`));
  await t.server.put(board(fork, "state", "plan", "y"), JSON.stringify("only here"));
  await t.go(`#/sessions/${session}/past?at=4&with=${fork}@`);
  const state = region(t, "Comparison").getByRole("region", { name: "State", exact: true });
  await state.getByText("1 difference").waitFor();
  assert.match(await state.innerText(), /plan\/y[\s\S]*absent[\s\S]*"only here"/);
  assert.match(await region(t, "requests").innerText(), /equal/);
  await t.go(`#/sessions/${fork}/past?at=2`);
  await t.page.getByText("This revision is compacted: the board is retained from revision 4 on.").waitFor();
  await t.page.getByRole("button", { name: "Oldest kept" }).click();
  await region(t, "requests").getByText("Open the report").waitFor();
});

describe("a restore is asked for, and can be undone", async (t) => {
  const session = fresh("restore");
  await filled(t, session);
  const { revision } = (await t.server.get(board(session))).body;
  await t.go(`#/sessions/${session}/past?at=3`);
  await t.page.getByRole("button", { name: "Restore" }).click();
  const dialog = t.page.getByRole("dialog");
  assert.match(await dialog.innerText(), new RegExp(`to restore revision ${revision} undoes it`));
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await t.server.get(board(session))).body.revision, revision);
  await t.page.getByRole("button", { name: "Restore" }).click();
  await t.page.getByRole("dialog").getByRole("button", { name: "Restore", exact: true }).click();
  await t.page.waitForURL((url) => url.hash.endsWith("/past"));
  await t.page.getByLabel("JSON").getByText("1", { exact: true }).waitFor();
  assert.deepEqual((await t.server.get(board(session, "state"))).body, { plan: { x: 1 } });
  await t.page.getByText("1 restore").waitFor();
});

describe("checkpoints are made and deleted", async (t) => {
  const session = fresh("points");
  await filled(t, session);
  await t.go(`#/sessions/${session}/past`);
  await t.page.getByRole("button", { name: "Checkpoints" }).click();
  const dialog = t.page.getByRole("dialog");
  await dialog.getByLabel("Name of the checkpoint").fill("before <print>");
  await t.page.keyboard.press("Enter");
  await dialog.getByRole("link", { name: "before <print>" }).waitFor();
  await dialog.getByRole("button", { name: "Delete the checkpoint middle" }).click();
  await dialog.getByRole("link", { name: "middle" }).waitFor({ state: "detached" });
  const { checkpoints } = (await t.server.get(board(session, "checkpoints"))).body;
  assert.deepEqual(checkpoints.map((one) => one.name), ["before <print>"]);
});

describe("numbers keep their texts in the timeline, a path's history and a comparison", async (t) => {
  const session = fresh("numbers");
  const path = board(session, "state", "x");
  for (const big of ["12345678901234567890", "12345678901234567891"]) await t.server.put(path, `{"big":${big},"f":1.10,"e":1e2}`);
  await t.go(`#/sessions/${session}/timeline`);
  await t.page.getByText('x = {"big":12345678901234567891,"f":1.10,"e":1e2}').waitFor();
  await t.go(`#/sessions/${session}/past?path=state/x`);
  await t.page.getByLabel("Changed value").filter({ hasText: "−" }).getByText('"big": 12345678901234567891,').waitFor();
  assert.equal(await t.page.getByText("The value stayed the same").count(), 0);
  // What a number stands for is still counted, and nothing else takes it for an object.
  await t.server.post(board(session, "questions"), { question: "How many?", options: [1.0, "2"], n: 1 });
  await t.server.post(board(session, "questions"), '{"question":"Which?","options":[1.50]}');
  await t.server.put(board(session, "agents", "A"), '{"type":"AppAgent","n":1.10}');
  await t.server.post(board(session, "agents", "A", "memory"), '{"step":1.0,"cost":0.50,"thought":1.0}', as("A"));
  await t.server.post(board(session, "requests"), '{"request":1.0}');
  await t.server.post(board(session, "trajectories"), '{"agent":1234567890123456789,"thought":"Numbered","step":2.0,"screenshot":3.0}');
  await t.server.put(board(session, "state", "agents", "A", "paused"), '{"request":3.0}');
  for (const view of ["questions", "agents?agent=A", "tasks", "prompt", "past", "search", "timeline"]) {
    await t.go(`#/sessions/${session}/${view}`);
    await t.page.locator(".view").first().waitFor();
    await t.page.waitForTimeout(300);
  }
  assert.match(await t.text(".overview"), /Cost[^]*\$0\.50/);
});
