// List of sessions, the palette, themes, and the log-in.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { board, describe, Server, visit } from "./harness.mjs";

describe("sessions are found by name and label, live, and made", async (t) => {
  await t.server.put(board("alpha"), { labels: { team: "ufo" } });
  await t.server.post(board("alpha", "questions"), { question: "Why?" });
  await t.server.post(board("beta", "requests"), { request: "Go" });
  await t.go("#/sessions");
  const row = (name) => t.page.locator(".session-row").filter({ has: t.page.getByRole("link", { name, exact: true }) });
  await row("alpha").getByText("1 open question").waitFor();
  await t.server.post(board("gamma", "requests"), { request: "Go" });
  await row("gamma").getByText("1 request").waitFor();
  await t.page.getByRole("searchbox").fill("team:ufo");
  await row("beta").waitFor({ state: "detached" });
  await row("alpha").getByRole("link", { name: "team: ufo" }).click();
  assert.match(t.page.url(), /label=team%3Aufo/);
  await t.page.getByRole("button", { name: "New session" }).click();
  await t.page.getByRole("dialog").getByLabel("Name").fill("delta");
  await t.page.getByRole("button", { name: "Make session" }).click();
  await t.page.waitForURL(/sessions\/delta\/timeline/);
  assert.equal((await t.server.get(board("delta"))).body.session, "delta");
});

describe("the palette goes to sessions and views, and the theme is kept", async (t) => {
  await t.server.put(board("palette-one"), {});
  await t.go("#/sessions");
  await t.page.keyboard.press("Control+k");
  await t.page.getByRole("combobox", { name: "Session or view" }).fill("palette-o");
  await t.page.getByRole("option", { name: /palette-one/ }).waitFor();
  await t.page.keyboard.press("Enter");
  await t.page.waitForURL(/sessions\/palette-one\/timeline/);
  await t.page.keyboard.press("3");
  await t.page.waitForURL(/palette-one\/state/);
  await t.page.getByRole("button", { name: "Theme: system" }).click();
  await t.page.getByRole("button", { name: "Theme: light" }).click();
  assert.equal(await t.page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await t.page.reload();
  await t.page.getByRole("button", { name: "Theme: dark" }).waitFor();
});

describe("a token is traded for a login, which ends with it", async () => {
  const server = await Server.start(["--require-token"]);
  try {
    const made = (name, ...scopes) => execFileSync(process.env.BLACKBOARD_BIN ?? "target/debug/blackboard", ["token", "create", "--name", name, "--scopes", scopes.join(","), "--data", server.data], { encoding: "utf8" }).trim();
    const [admin, reader] = [made("page", "admin"), made("reader", "read")];
    await server.post(board("s", "requests"), { request: "Go" }, { Authorization: `Bearer ${admin}` });
    const { page, go, context, wrong } = await visit({ of: server });
    await go("#/sessions");
    await page.getByLabel("Token").fill("bb_wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("the token is unknown to this server").waitFor();
    await page.getByLabel("Token").fill(reader);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("link", { name: "s", exact: true }).waitFor();
    assert.equal(await page.getByRole("button", { name: "New session" }).count(), 0);
    await page.getByRole("button", { name: "Your name" }).click();
    await page.getByText("Logged in with the token reader, which may only read.").waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("Token").fill(admin);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("link", { name: "s", exact: true }).click();
    await page.locator(".live.live").waitFor();
    execFileSync(process.env.BLACKBOARD_BIN ?? "target/debug/blackboard", ["token", "revoke", "page", "--data", server.data]);
    await page.getByLabel("Token").waitFor();
    await context.close();
    assert.deepEqual(wrong, []);
  } finally {
    await server.stop();
  }
});
