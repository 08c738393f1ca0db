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
