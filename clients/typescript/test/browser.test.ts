/** Client in Debian's Chromium, bundled, against a server that allows the page's origin. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";

import { build } from "esbuild";
import { chromium } from "playwright-core";
import type { Page } from "playwright-core";

import { numbers, root, startServer } from "./server.js";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Switches that keep the browser from the network. */
const SWITCHES = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Serves a page with the bundle, and returns its origin. */
async function servePage(t: TestContext): Promise<string> {
  const bundle = await build({
    entryPoints: [join(root, "build/page.js")],
    bundle: true,
    format: "esm",
    platform: "browser",
    minify: true,
    write: false,
  });
  const script = bundle.outputFiles[0]?.text ?? "";
  const server = createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.setHeader("Content-Type", isScript ? "text/javascript" : "text/html; charset=utf-8");
    response.end(
      isScript ? script : '<!doctype html><title>page</title><script type="module" src="/page.js"></script>',
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Opens the page in a browser of its own. */
async function openPage(t: TestContext, origin: string): Promise<Page> {
  assert(existsSync(CHROMIUM), `There is no browser at ${CHROMIUM}: apt-get install chromium, or set CHROMIUM`);
  const profile = mkdtempSync(join(tmpdir(), "blackboard-chromium-"));
  const context = await chromium.launchPersistentContext(profile, { executablePath: CHROMIUM, args: SWITCHES });
  t.after(async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  });
  const page = await context.newPage();
  await page.goto(origin);
  await page.waitForFunction("globalThis.page !== undefined");
  return page;
}

test("the bundled client works in a browser", { timeout: 120_000 }, async (t) => {
  const origin = await servePage(t);
  const server = await startServer(t, "--cors-origins", origin);
  const token = server.token("admin", "--scopes", "admin");
  const page = await openPage(t, origin);
  await page.exposeFunction("restart", async () => {
    await server.kill();
    await server.start();
  });
  const { url } = server;

  const toured = await page.evaluate(([url, token]) => globalThis.page.tour(url, token), [url, token] as const);
  assert.deepEqual(toured, {
    revision: 1,
    agent: "Päge",
    parts: 4,
    bytes: [1, 2, 3],
    answer: "floor 3",
    worked: "done",
    current: ["precondition-failed", 15, true],
  });
  const followed = await page.evaluate(([url, token]) => globalThis.page.follow(url, token), [url, token] as const);
  assert.deepEqual(followed, numbers(20));
  const wrong = await page.evaluate((url) => globalThis.page.refusal(url, "bb_wrong", 20_000), url);
  assert.match(wrong, /^Problem: unauthorized: /);
});

test("a page whose origin is not allowed is told so", { timeout: 120_000 }, async (t) => {
  const server = await startServer(t);
  const page = await openPage(t, await servePage(t));
  const refused = await page.evaluate((url) => globalThis.page.refusal(url, "bb_token", 300), server.url);
  assert.match(refused, /^ConnectionFailed: .*; is the page's origin in its --cors-origins\?$/);
});
