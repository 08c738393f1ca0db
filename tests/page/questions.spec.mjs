// Questions: answers in place, answers by others, and unsent texts.

import assert from "node:assert/strict";
import { describe, board } from "./harness.mjs";

async function ask(server, session, item, query = "", agent = "ExcelAgent") {
  return (await server.post(`${board(session, "questions")}${query}`, item, { "X-Agent-ID": agent })).body.entries[0].seq;
}

const inbox = (session) => `#/questions?session=${session}`;
const card = (page, text) => page.getByRole("article", { name: text });

describe("an answer on the page reaches the agent that waits", async (t) => {
  const session = "questions-wait";
  const { server, page } = t;
  await ask(server, session, { question: "Overwrite the file?" });
  const waiting = fetch(`${server.url}${board(session, "questions", "1")}?wait=30s&until=answered`).then((answer) => answer.json());
  await t.go(inbox(session));
  const field = card(page, "Overwrite the file?").getByRole("textbox");
  await field.fill("yes, but keep a copy");
  await field.press("Control+Enter");
  assert.equal((await waiting).item.answer, "yes, but keep a copy");
  await card(page, "Overwrite the file?").waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Answered here" }).getByText("yes, but keep a copy").waitFor();
});

describe("options are buttons, and a question can be skipped", async (t) => {
  const session = "questions-options";
  const { server, page } = t;
  await ask(server, session, { question: "Months or weeks?", options: ["Months", "Weeks"] }, "?expires=10m&default=Months");
  await ask(server, session, { text: "Which printer?", choices: [{ label: "Lobby", value: "p0" }] });
  await ask(server, session, { question: "Anything else?" });
  await t.go(inbox(session));
  const first = card(page, "Months or weeks?");
  await first.getByText(/left, then “Months”/).waitFor();
  await first.getByRole("button", { name: "Weeks" }).click();
  await first.waitFor({ state: "detached" });
  await card(page, "Which printer?").getByRole("button", { name: "Lobby" }).click();
  await card(page, "Which printer?").waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Answered here" }).getByText("Lobby", { exact: true }).waitFor();
  await card(page, "Anything else?").getByRole("button", { name: "Skip" }).click();
  await card(page, "Anything else?").waitFor({ state: "detached" });
  const { body } = await server.get(board(session, "questions"));
  assert.deepEqual(body.entries.map(({ item }) => [item.answer, item.skipped]), [["Weeks", undefined], ["p0", undefined], [null, true]]);
  await page.getByRole("heading", { name: "No open question matches" }).waitFor();
});

describe("what others answer becomes a line, and unsent text stays", async (t) => {
  const session = "questions-elsewhere";
  const { server, page } = t;
  for (const text of ["First?", "Second?", "Third?"]) await ask(server, session, { question: text });
  await t.go(inbox(session));
  await card(page, "First?").getByRole("textbox").fill("half a thou");
  await card(page, "Second?").getByRole("textbox").fill("kept");
  await server.put(board(session, "questions", "1", "answer"), { answer: "the winner" }, { "X-Agent-ID": "HostAgent" });
  const line = page.getByRole("status").filter({ hasText: "Answered elsewhere" });
  await line.getByText("the winner").waitFor();
  await line.getByText("HostAgent").waitFor();
  await line.getByText("half a thou").waitFor();
  await ask(server, session, { question: "Fourth?" });
  await card(page, "Fourth?").waitFor();
  assert.equal(await card(page, "Second?").getByRole("textbox").inputValue(), "kept");
  await line.getByRole("button", { name: "Close" }).click();
  await line.waitFor({ state: "detached" });
  // Another view and back.
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await page.goBack();
  await card(page, "Second?").waitFor();
  assert.equal(await card(page, "Second?").getByRole("textbox").inputValue(), "kept");
});

describe("the second of two answers is told the first", async (t) => {
  const session = "questions-race";
  const { server, page } = t;
  await ask(server, session, { question: "Who is first?" });
  await t.go(inbox(session));
  await card(page, "Who is first?").getByRole("textbox").fill("I am");
  // The page does not see the inbox while others answer.
  await page.route("**/v1/questions?*", (route) => route.abort());
  await server.put(board(session, "questions", "1", "answer"), { answer: "they were" }, { "X-Agent-ID": "HostAgent" });
  await card(page, "Who is first?").getByRole("button", { name: "Answer", exact: false }).first().click();
  const line = page.getByRole("status").filter({ hasText: "Answered elsewhere" });
  await line.getByText("they were").waitFor();
  await line.getByText("I am").waitFor();
  assert.equal((await server.get(board(session, "questions", "1"))).body.item.answer, "they were");
});

describe("the navigation and the title count open questions", async (t) => {
  const { server, page } = t;
  await t.go("#/sessions");
  const before = (await server.get("/v1/questions?limit=1000")).body.questions.length;
  await ask(server, "questions-count", { question: "Counted?" });
  await page.waitForFunction((n) => document.title === `(${n}) Sessions · Blackboard`, before + 1);
  await page.getByLabel(before + 1 === 1 ? "1 open question" : `${before + 1} open questions`, { exact: true }).first().waitFor();
  await page.getByRole("link", { name: /^Questions/ }).click();
  await card(page, "Counted?").waitFor();
});

describe("a new question is notified once, and not on the inbox", async (t) => {
  const session = "questions-notify";
  const { server, page } = t;
  await page.addInitScript(() => {
    try {
      localStorage.setItem("blackboard.notify", "true");
    } catch {
      // A blank page has no storage.
    }
    window.told = [];
    window.Notification = class {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(title, { body }) {
        window.told.push([title, body]);
        window.lastTold = this;
      }
      close() {}
    };
  });
  await ask(server, session, { question: "Old?" });
  await t.go("#/sessions");
  await page.getByLabel(/open question/).first().waitFor();
  await ask(server, session, { question: "New?" });
  await page.waitForFunction(() => window.told.length > 0);
  assert.deepEqual(await page.evaluate(() => window.told), [[`ExcelAgent in ${session}`, "New?"]]);
  await page.evaluate(() => window.lastTold.onclick());
  await card(page, "New?").waitFor();
  assert.match(page.url(), /#\/questions\?session=questions-notify/);
  await ask(server, session, { question: "Newer?" });
  await card(page, "Newer?").waitFor();
  assert.equal(await page.evaluate(() => window.told.length), 1);
});

const group = (page, text) => page.locator("[data-group]").filter({ hasText: text });
const drawer = (page, name) => page.getByRole("complementary", { name });

describe("a question is answered in the timeline, by keyboard", async (t) => {
  const session = "questions-timeline";
  const { server, page } = t;
  await ask(server, session, { question: "Months or <b>weeks</b>?", options: ["Months", "Weeks"] });
  await ask(server, session, { question: "Which printer?" });
  await ask(server, session, { question: "Anything else?" });
  await t.go(`#/sessions/${session}/timeline`);
  await group(page, "Months or <b>weeks</b>?").getByRole("button", { name: "Weeks" }).click();
  await group(page, "Months or").getByText("Answer: Weeks").waitFor();
  assert.equal(await group(page, "Months or").getByRole("textbox").count(), 0);
  const field = page.getByRole("textbox", { name: `Answer to question 2 of ${session}` });
  await field.focus();
  // A letter is no shortcut here.
  await page.keyboard.type("j e the lobby's");
  await page.keyboard.press("Control+Enter");
  await group(page, "Which printer?").getByText("Answer: j e the lobby's").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Which printer?");
  await group(page, "Anything else?").getByRole("button", { name: "Skip" }).click();
  await group(page, "Anything else?").getByRole("textbox").waitFor({ state: "detached" });
  const { body } = await server.get(board(session, "questions"));
  assert.deepEqual(body.entries.map(({ item }) => item.answer), ["Weeks", "j e the lobby's", null]);
});

describe("what one types stays over live entries, and is the same in the drawer", async (t) => {
  const session = "questions-typing";
  const { server, page } = t;
  await server.post(board(session, "trajectories"), Array.from({ length: 40 }, (_, step) => ({ step, thought: `Thought ${step}.` })));
  await ask(server, session, { question: "Which quarter?" });
  await t.go(`#/sessions/${session}/timeline`);
  const field = group(page, "Which quarter?").getByRole("textbox");
  await field.click();
  await page.keyboard.type("the thi");
  await page.locator(".live.live").waitFor();
  const before = (await field.boundingBox()).y;
  await server.post(board(session, "trajectories"), Array.from({ length: 30 }, (_, step) => ({ step, thought: `Later ${step}.` })));
  await page.getByRole("button", { name: /new entr/ }).waitFor();
  assert.equal((await field.boundingBox()).y, before);
  await page.keyboard.type("rd");
  assert.equal(await field.inputValue(), "the third");
  await group(page, "Which quarter?").getByRole("link", { name: "Which quarter?" }).click();
  const inside = drawer(page, "questions/1").getByRole("textbox");
  assert.equal(await inside.inputValue(), "the third");
  await inside.fill("the third, please");
  await server.patch(board(session, "questions", "1"), { hint: "of 2026" });
  await drawer(page, "questions/1").getByText("of 2026").waitFor();
  assert.equal(await inside.inputValue(), "the third, please");
  await inside.press("Control+Enter");
  await drawer(page, "questions/1").getByText('"answer"').waitFor();
  await inside.waitFor({ state: "detached" });
  await group(page, "Which quarter?").getByText("Answer: the third, please").waitFor();
});

describe("an answer that comes first is shown where one types", async (t) => {
  const session = "questions-first";
  const { server, page } = t;
  await ask(server, session, { question: "Who is first?" });
  await ask(server, session, { question: "And who now?" });
  await t.go(`#/sessions/${session}/timeline`);
  await page.locator(".live.live").waitFor();
  await group(page, "Who is first?").getByRole("textbox").fill("I am");
  // The server has their answer before this one comes.
  await page.route("**/questions/1/answer", async (route) => {
    await server.put(board(session, "questions", "1", "answer"), { answer: "they were" }, { "X-Agent-ID": "HostAgent" });
    await route.continue();
  });
  const answered = page.waitForResponse((answer) => answer.status() === 409);
  await group(page, "Who is first?").getByRole("textbox").press("Control+Enter");
  assert.equal((await (await answered).json()).code, "already-answered");
  const line = group(page, "Who is first?").getByRole("status");
  await line.getByText("they were").waitFor();
  await line.getByText("HostAgent").waitFor();
  await line.getByText("I am").waitFor();
  await line.getByRole("button", { name: "Close" }).click();
  await line.waitFor({ state: "detached" });
  await group(page, "Who is first?").getByText("Answer: they were").waitFor();
  // What one has typed is not lost with the field, and a deleted question has none.
  await group(page, "And who now?").getByRole("textbox").fill("nobody");
  await server.del(board(session, "questions"));
  await group(page, "And who now?").getByText("Deleted").waitFor();
  await group(page, "And who now?").getByRole("status").getByText("nobody").waitFor();
});

describe("the past has no field for an answer, and nor has a reader", async (t) => {
  const session = "questions-past";
  const { server, page } = t;
  await ask(server, session, { question: "Then?" });
  await server.put(board(session, "questions", "1", "answer"), { answer: "now" });
  await t.go(`#/sessions/${session}/past?at=1&open=questions%2F1`);
  await drawer(page, "questions/1").getByText('"Then?"').waitFor();
  assert.equal(await drawer(page, "questions/1").getByRole("textbox").count(), 0);
  await ask(server, session, { question: "Open?" });
  await page.route("**/ui/session", (route) => route.fulfill({ json: { tokens_required: true, login: { token: { name: "reader", scopes: ["read"] } } } }));
  await page.reload();
  await t.go(`#/sessions/${session}/timeline`);
  await group(page, "Open?").waitFor();
  assert.equal(await group(page, "Open?").getByRole("textbox").count(), 0);
});
