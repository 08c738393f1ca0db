// Session at a revision as one HTML file: saved, opened without a server, and its content.

import assert from "node:assert/strict";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, board } from "./harness.mjs";

const PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const HOSTILE = '<script>alert(1)</script><img src="x" onerror="alert(1)"> javascript:alert(1) \u202eright to left';

async function filled(t, session) {
  const as = { "X-Agent-ID": "HostAgent" };
  await t.server.put(board(session, "agents", "HostAgent"), { type: "HostAgent", status: "CONTINUE" }, as);
  await t.server.post(board(session, "requests"), [{ request: HOSTILE }], as);
  await t.server.post(board(session, "screenshots"), { image_str: PIXEL, metadata: HOSTILE }, as);
  await t.server.put(board(session, "state", "plan"), { [HOSTILE]: HOSTILE }, as);
  const { body } = await t.server.get(board(session));
  await t.server.post(board(session, "requests"), [{ request: "after the revision" }], as);
  return body.revision;
}

/** Saves the file by `act`, and opens it in a page without any server. */
async function saved(t, act, look) {
  const folder = await mkdtemp(join(tmpdir(), "blackboard-snapshot-"));
  try {
    const [download] = await Promise.all([t.page.waitForEvent("download"), act()]);
    const path = join(folder, "file.html");
    await copyFile(await download.path(), path);
    const page = await t.context.browser().newPage();
    const [wrong, asked] = [[], []];
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("console", (message) => wrong.push(message.text()));
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(`file://${path}`);
    await look(page, download.suggestedFilename());
    await page.close();
    assert.deepEqual(wrong, []);
    assert.deepEqual(asked.filter((url) => !url.startsWith("data:image/png")), [`file://${path}`]);
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe("a revision is saved as one file that needs no server", async (t) => {
  const session = `snapshot-${process.pid}`;
  const revision = await filled(t, session);
  await t.go(`#/sessions/${session}/past?at=${revision}`);
  await saved(t, () => t.page.getByRole("button", { name: "Save" }).click(), async (page, name) => {
    assert.equal(name, `${session}-at-${revision}.html`);
    const text = await page.locator("body").innerText();
    assert.ok(text.includes("<script>alert(1)</script>"), text);
    assert.ok(!text.includes("after the revision"));
    assert.match(await page.locator("pre").last().innerText(), /onerror/);
    const image = page.getByRole("img", { name: "Screenshot 1" });
    assert.equal(await image.evaluate((one) => one.complete && one.naturalWidth), 1);
    await page.getByText("JSON", { exact: true }).first().click();
    await page.getByText('"agent": "HostAgent"').first().waitFor();
  });
  await t.page.getByText(/^Saved /).waitFor();
  await t.page.waitForURL((url) => !/save=/.test(url.hash));
});

describe("the palette saves the present board", async (t) => {
  const session = `palette-${process.pid}`;
  await filled(t, session);
  await t.go(`#/sessions/${session}/timeline`);
  await saved(t, async () => {
    await t.page.keyboard.press("Control+k");
    await t.page.getByRole("combobox").fill("save as");
    await t.page.keyboard.press("Enter");
  }, async (page) => {
    assert.ok((await page.locator("body").innerText()).includes("after the revision"));
  });
});
