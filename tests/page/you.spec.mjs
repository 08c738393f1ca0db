// The name that a person gives once: kept, checked, sent with each write, and not for a token that has an agent's.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { board, describe, Server, visit } from "./harness.mjs";

const dialog = (page) => page.getByRole("dialog", { name: "You" });

async function give(page, name) {
  await page.getByRole("button", { name: /^Your name/ }).click();
  await dialog(page).getByLabel("Your name").fill(name);
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await dialog(page).waitFor({ state: "detached" });
}

describe("a name given once stands beside what one writes", async (t) => {
  const session = "you-writes";
  const name = "Zoë <b> 木";
  const { page, server } = t;
  await server.put(board(session, "state", "plan"), '"draft"');
  await server.post(board(session, "requests"), { request: "Go" }, { "X-Agent-ID": "HostAgent" });
  await t.go(`#/sessions/${session}/state?path=plan`);
  await give(page, `  ${name} `);
  await page.getByRole("button", { name: `Your name: ${name}` }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: `Your name: ${name}` }).getByText(name).waitFor();
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByLabel("Value as JSON").fill('"final"');
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("dialog").waitFor({ state: "detached" });
  await t.go(`#/sessions/${session}/tasks`);
  await page.getByRole("button", { name: "New request" }).click();
  await page.getByLabel("Request", { exact: true }).fill("Read it");
  await page.getByRole("button", { name: "Make request" }).click();
  await page.getByRole("region", { name: "Request 2" }).getByText(name).first().waitFor();
  const { body } = await server.get(`${board(session, "audit")}?after=2`);
  assert.deepEqual(body.commits.map((commit) => commit.agent), [name, name]);
  // Without a name nobody is named.
  await give(page, "");
  await page.getByRole("button", { name: "Your name", exact: true }).waitFor();
  await page.getByRole("button", { name: "New request", exact: true }).click();
  await page.getByLabel("Request", { exact: true }).fill("Print it");
  await page.getByRole("button", { name: "Make request" }).click();
  await page.getByRole("region", { name: "Request 3" }).waitFor();
  assert.equal((await server.get(board(session, "requests", "3"))).body.agent, undefined);
});

describe("a claim is released by whoever has its holder's name, and by no other", async (t) => {
  const session = "you-claims";
  const { page, server } = t;
  await server.post(board(session, "requests"), { request: "Go" });
  await server.put(board(session, "requests", "1", "claim"), { ttl: "10m" }, { "X-Agent-ID": "Ann" });
  await t.go(`#/sessions/${session}/tasks?request=1`);
  const one = page.getByRole("region", { name: "Request 1" });
  await one.getByText("Claimed").first().waitFor();
  await give(page, "Bob");
  assert.equal(await one.getByRole("button", { name: "Release the claim" }).count(), 0);
  await give(page, "Ann");
  await one.getByRole("button", { name: "Release the claim" }).click();
  await one.getByText("Pending").waitFor();
});

describe("the page takes the names that the server takes", async (t) => {
  const { page, server } = t;
  await t.go("#/sessions");
  const names = ["Ann", " ", "a b", "a:b", "<i>", "木".repeat(85), `${"木".repeat(85)}a`, `${"木".repeat(85)}ab`, "x".repeat(257), ".", "..", "...", "a/b", "\u0085", "\u007f", "\u202e", "~", "%"];
  const faults = await page.evaluate(async (all) => {
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name).find((name) => name.endsWith("/core/settings.js"));
    const { nameFault } = await import(loaded);
    return all.map((name) => nameFault(name) !== undefined);
  }, names);
  for (const [i, name] of names.entries()) {
    const answer = await fetch(`${server.url}${board("you-names", "requests")}`, { method: "POST", headers: { "Content-Type": "application/json", "X-Agent-ID": encodeURIComponent(name) }, body: "{}" });
    assert.equal(answer.status, faults[i] ? 400 : 201, `${JSON.stringify(name)}: ${await answer.text()}`);
  }
  await page.getByRole("button", { name: "Your name" }).click();
  await dialog(page).getByLabel("Your name").fill("a/b");
  await dialog(page).getByText("A name has no '/' and no control characters.").waitFor();
  assert.equal(await dialog(page).getByRole("button", { name: "Save" }).isDisabled(), true);
  await page.keyboard.press("Escape");
  await dialog(page).waitFor({ state: "detached" });
});

describe("what a browser has kept is no name if the server would not take it", async (t) => {
  const session = "you-kept";
  await t.page.addInitScript(() => {
    try {
      localStorage.setItem("blackboard.author", '{"name":"a/b\\n"}');
    } catch {
      // A blank page has no storage.
    }
  });
  await t.server.post(board(session, "questions"), { question: "Go on?" });
  await t.go(`#/questions?session=${session}`);
  await t.page.getByRole("button", { name: "Your name", exact: true }).waitFor();
  await t.page.getByRole("textbox", { name: "Answer to question 1" }).fill("yes");
  await t.page.keyboard.press("Control+Enter");
  await t.page.getByRole("region", { name: "Answered here" }).waitFor();
  assert.equal((await t.server.get(board(session, "questions", "1"))).body.updated_by, undefined);
});

test("a token of an agent writes under its name, and one cannot choose another", async () => {
  const server = await Server.start(["--require-token"]);
  try {
    const made = (...flags) => execFileSync(process.env.BLACKBOARD_BIN ?? "target/debug/blackboard", ["token", "create", ...flags, "--data", server.data], { encoding: "utf8" }).trim();
    const admin = made("--name", "all", "--scopes", "admin");
    const [bound, open] = [made("--name", "critic", "--agent", "CriticAgent"), made("--name", "people")];
    await server.post(board("s", "questions"), [{ question: "First?" }, { question: "Second?" }], { Authorization: `Bearer ${admin}` });
    const { page, go, context, wrong } = await visit({ of: server });
    // The name of an earlier log-in.
    await page.addInitScript(() => {
      try {
        localStorage.setItem("blackboard.author", '{"name":"Ann"}');
      } catch {
        // A blank page has no storage.
      }
    });
    const sent = [];
    page.on("request", (request) => request.method() === "PUT" && sent.push(request.headers()["x-agent-id"]));
    const logIn = async (token) => {
      await page.getByLabel("Token").fill(token);
      await page.getByRole("button", { name: "Log in" }).click();
    };
    const answer = async (seq, text) => {
      const field = page.getByRole("textbox", { name: `Answer to question ${seq} of s` });
      await field.fill(text);
      await field.press("Control+Enter");
      await page.getByRole("region", { name: "Answered here" }).getByText(text).waitFor();
    };
    await go("#/questions");
    await logIn(bound);
    await page.getByRole("button", { name: "Your name: CriticAgent" }).click();
    await dialog(page).getByText("The token is that of the agent").waitFor();
    assert.equal(await dialog(page).getByRole("textbox").count(), 0);
    await page.keyboard.press("Escape");
    await answer(1, "by the token");
    await page.getByRole("button", { name: "Your name: CriticAgent" }).click();
    await dialog(page).getByRole("button", { name: "Log out" }).click();
    await logIn(open);
    await page.getByRole("button", { name: "Your name: Ann" }).waitFor();
    await answer(2, "by the name");
    const { body } = await server.get(board("s", "questions"), { Authorization: `Bearer ${admin}` });
    assert.deepEqual(body.entries.map((entry) => entry.updated_by), ["CriticAgent", "Ann"]);
    assert.deepEqual(sent, [undefined, "Ann"]);
    await context.close();
    assert.deepEqual(wrong, []);
  } finally {
    await server.stop();
  }
});
