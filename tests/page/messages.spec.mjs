// Messages: sent, answered and acknowledged under an agent; in the timeline, the drawer and the search; and by whom.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { board, describe, Server, visit } from "./harness.mjs";

const inbox = (session, agent) => board(session, "agents", agent, "messages");
const as = (agent) => ({ "X-Agent-ID": encodeURIComponent(agent) });
const messages = (page) => page.getByRole("region", { name: "Messages" });
const message = (page, text) => messages(page).getByRole("listitem").filter({ hasText: text });
const drawer = (page, name) => page.getByRole("complementary", { name });
const group = (page, text) => page.locator("[data-group]").filter({ hasText: text });

async function call(page, name) {
  await page.addInitScript((kept) => {
    try {
      localStorage.setItem("blackboard.author", JSON.stringify({ name: kept }));
    } catch {
      // A blank page has no storage.
    }
  }, name);
}

describe("a message is sent from an agent's view, in a thread and under a name", async (t) => {
  const session = "messages-send";
  const agent = "Device~1 é";
  const { server, page } = t;
  await call(page, "Zoë");
  await server.put(board(session, "agents", agent), { type: "AppAgent" });
  await t.go(`#/sessions/${session}/agents?agent=${encodeURIComponent(agent)}`);
  await messages(page).getByText("No messages.").waitFor();
  const field = messages(page).getByRole("textbox", { name: `Message to ${agent}` });
  await messages(page).getByRole("textbox", { name: "Thread (optional)" }).fill("print");
  await field.fill("Use the lobby's printer.");
  await page.locator(".live.live").waitFor();
  // A live update leaves what one types.
  await server.post(inbox(session, agent), { text: "From another." }, as("HostAgent"));
  await message(page, "From another.").waitFor();
  assert.equal(await field.inputValue(), "Use the lobby's printer.");
  await field.press("Control+Enter");
  const mine = message(page, "Use the lobby's printer.");
  await mine.getByText("Zoë").waitFor();
  await mine.getByText("thread print").waitFor();
  await mine.getByText("not acknowledged").waitFor();
  assert.equal(await field.inputValue(), "");
  const { body } = await server.get(inbox(session, agent));
  assert.deepEqual(body.entries.map((entry) => [entry.agent, entry.item]), [["HostAgent", { text: "From another." }], ["Zoë", { text: "Use the lobby's printer.", thread: "print" }]]);
});

describe("a person reads, answers and acknowledges messages to their name", async (t) => {
  const session = "messages-person";
  const { server, page } = t;
  await call(page, "Zoë");
  await server.post(inbox(session, "HostAgent"), { text: "Which printer?" }, as("Zoë"));
  await server.post(inbox(session, "Zoë"), { text: "The lobby's is out of paper.", thread: "print", reply_to: 1 }, as("HostAgent"));
  await t.go(`#/sessions/${session}/timeline`);
  await page.getByRole("button", { name: "Your name: Zoë" }).click();
  await page.getByRole("link", { name: `Messages to Zoë in ${session}` }).click();
  const one = message(page, "The lobby's is out of paper.");
  await one.getByRole("link", { name: "#1 to HostAgent" }).click();
  await drawer(page, "agents/HostAgent/messages/1").getByText("Which printer?").first().waitFor();
  await page.keyboard.press("Escape");
  await drawer(page, "agents/HostAgent/messages/1").waitFor({ state: "detached" });
  await one.getByRole("button", { name: "Reply" }).click();
  const field = one.getByRole("textbox", { name: "Message to HostAgent" });
  await page.waitForFunction(() => document.activeElement?.ariaLabel === "Message to HostAgent");
  await page.keyboard.type("Then the one upstairs.");
  await page.keyboard.press("Control+Enter");
  await field.waitFor({ state: "detached" });
  const sent = (await server.get(board(session, "agents", "HostAgent", "messages", "2"))).body;
  assert.deepEqual([sent.agent, sent.item], ["Zoë", { text: "Then the one upstairs.", thread: "print", reply_to: 1 }]);
  await one.getByRole("button", { name: "Acknowledge" }).click();
  await one.getByText(/^acknowledged/).waitFor();
  assert.equal(await one.getByRole("button", { name: "Acknowledge" }).count(), 0);
  assert.ok((await server.get(board(session, "agents", "Zoë", "messages", "1"))).body.acked_at);
  await messages(page).getByLabel("Only those not acknowledged").check();
  await messages(page).getByText("All are acknowledged.").waitFor();
});

describe("what an agent acknowledges is told live, and many messages are read on demand", async (t) => {
  const session = "messages-live";
  const { server, page } = t;
  await server.put(board(session, "agents", "AppAgent"), {}, as("AppAgent"));
  await server.post(inbox(session, "AppAgent"), Array.from({ length: 45 }, (_, i) => ({ text: `Note ${i + 1}.` })), as("HostAgent"));
  await t.go(`#/sessions/${session}/agents?agent=AppAgent`);
  await message(page, "Note 45.").getByText("not acknowledged").waitFor();
  await page.locator(".live.live").waitFor();
  await server.put(`${inbox(session, "AppAgent")}/45/ack`, undefined, as("AppAgent"));
  await message(page, "Note 45.").getByText(/^acknowledged/).waitFor();
  assert.equal(await messages(page).getByRole("listitem").count(), 20);
  await messages(page).getByRole("button", { name: "Show more of 45 messages" }).click();
  await message(page, "Note 6.").waitFor();
  await messages(page).getByRole("button", { name: "Show more of 45 messages" }).click();
  await message(page, "Note 1.").waitFor();
  assert.equal(await messages(page).getByRole("button", { name: /^Show more/ }).count(), 0);
});

describe("a message is one card of the timeline with its acknowledgement, and is found", async (t) => {
  const session = "messages-timeline";
  const { server, page } = t;
  await server.post(inbox(session, "AppAgent"), { text: "Print <b>page</b> zyxwv" }, as("HostAgent"));
  await server.post(inbox(session, "AppAgent"), { text: "Nobody's word" });
  await server.post(board(session, "trajectories"), { step: 1, thought: "A step." }, as("AppAgent"));
  await t.go(`#/sessions/${session}/timeline`);
  const card = group(page, "Print <b>page</b> zyxwv");
  assert.match(await t.text(card), /HostAgent\s*to\s*AppAgent/);
  assert.match(await t.text(group(page, "Nobody's word")), /no agent\s*to\s*AppAgent/);
  await page.locator(".live.live").waitFor();
  await server.put(`${inbox(session, "AppAgent")}/1/ack`, undefined, as("AppAgent"));
  await card.getByText("Acknowledged").waitFor();
  assert.equal(await card.count(), 1);
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("group", { name: "Kinds" }).getByRole("button", { name: "Messages" }).click();
  await group(page, "A step.").waitFor({ state: "detached" });
  await card.getByRole("link", { name: "Print <b>page</b> zyxwv" }).click();
  await drawer(page, "agents/AppAgent/messages/1").locator("dt", { hasText: "Acknowledged" }).waitFor();
  await t.go(`#/search?q=zyxwv&log=messages`);
  await page.locator(".search-hit").getByText("agents/AppAgent/messages/1").waitFor();
});

describe("a fork shows the messages from before it", async (t) => {
  const { server, page } = t;
  await server.put(board("messages-old", "agents", "AppAgent"), {}, as("AppAgent"));
  await server.post(inbox("messages-old", "AppAgent"), [{ text: "First." }, { text: "Second." }], as("HostAgent"));
  await server.put(`${inbox("messages-old", "AppAgent")}/1/ack`, undefined, as("AppAgent"));
  await server.post(board("messages-old", "requests"), { request: "Go" });
  await server.post(`${board("messages-old")}/fork`, { to: "messages-fork" });
  await t.go("#/sessions/messages-fork/timeline");
  await group(page, "First.").getByText("Acknowledged").waitFor();
  await group(page, "Second.").waitFor();
  assert.equal(await group(page, "Second.").getByText("Acknowledged").count(), 0);
});

describe("a hostile message is text", async (t) => {
  const session = "messages-hostile";
  const { server, page } = t;
  const bad = "<img src=x onerror=window.hacked=1>";
  await server.put(board(session, "agents", "AppAgent"), {});
  await server.post(inbox(session, "AppAgent"), [
    { text: bad, thread: bad, reply_to: bad },
    { text: { deep: [bad] }, thread: ["t"], reply_to: 1e300 },
    { [bad]: "x".repeat(100_000), reply_to: -1 },
    {},
  ], as(`<i>${bad.slice(0, 30)}`.replaceAll("/", "")));
  await server.post(inbox(session, "AppAgent"), '{"text":"exact","thread":1.50,"reply_to":12345678901234567890}', as("HostAgent"));
  await t.go(`#/sessions/${session}/agents?agent=AppAgent`);
  await messages(page).getByRole("listitem").nth(4).waitFor();
  await message(page, "exact").getByText("#12345678901234567000 to HostAgent").waitFor();
  await message(page, "exact").getByText("thread 1.50").waitFor();
  await messages(page).getByText(bad, { exact: true }).first().waitFor();
  await messages(page).getByRole("button", { name: /^Show all/ }).click();
  await t.go(`#/sessions/${session}/timeline`);
  await group(page, bad).first().waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
});

test("a token sends to all, reads its own messages, and acknowledges no other's", async () => {
  const server = await Server.start(["--require-token"]);
  try {
    const made = (...flags) => execFileSync(process.env.BLACKBOARD_BIN ?? "target/debug/blackboard", ["token", "create", ...flags, "--data", server.data], { encoding: "utf8" }).trim();
    const root = { Authorization: `Bearer ${made("--name", "all", "--scopes", "admin")}` };
    const critic = made("--name", "critic", "--agent", "CriticAgent");
    const auditor = made("--name", "auditor", "--agent", "AuditAgent", "--scopes", "read,write,memory:read");
    for (const agent of ["CriticAgent", "AppAgent"]) {
      await server.put(board("s", "agents", agent), {}, root);
      await server.post(inbox("s", agent), { text: `For ${agent}.` }, { ...root, ...as("HostAgent") });
    }
    const { page, go, context, wrong } = await visit({ of: server });
    const logIn = async (token) => {
      await page.getByLabel("Token").fill(token);
      await page.getByRole("button", { name: "Log in" }).click();
    };
    await go("#/sessions/s/agents?agent=AppAgent");
    await logIn(critic);
    await messages(page).getByText("The messages to an agent are its own.").waitFor();
    assert.equal(await messages(page).getByRole("listitem").count(), 0);
    await messages(page).getByRole("textbox", { name: "Message to AppAgent" }).fill("Look again.");
    await page.keyboard.press("Control+Enter");
    await page.getByText("Sent to AppAgent as CriticAgent").waitFor();
    const { body } = await server.get(inbox("s", "AppAgent"), root);
    assert.deepEqual([body.entries[1].agent, body.entries[1].item.text], ["CriticAgent", "Look again."]);
    await go("#/sessions/s/timeline");
    await page.locator(".live.live").waitFor();
    await group(page, "For CriticAgent.").waitFor();
    assert.equal(await group(page, "For AppAgent.").count(), 0);
    await go("#/sessions/s/agents?agent=CriticAgent");
    await message(page, "For CriticAgent.").getByRole("button", { name: "Acknowledge" }).click();
    await message(page, "For CriticAgent.").getByText(/^acknowledged/).waitFor();
    await page.getByRole("button", { name: "Your name: CriticAgent" }).click();
    await page.getByRole("button", { name: "Log out" }).click();
    await logIn(auditor);
    await go("#/sessions/s/agents?agent=AppAgent");
    await message(page, "For AppAgent.").waitFor();
    assert.equal(await messages(page).getByRole("button", { name: "Acknowledge" }).count(), 0);
    await context.close();
    assert.deepEqual(wrong, []);
  } finally {
    await server.stop();
  }
});
