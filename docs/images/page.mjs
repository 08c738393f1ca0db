// Takes page-timeline.png and page-past.png, each light and dark: the page with the session of `blackboard demo`.
//
//     cargo build && npm --prefix tests/page ci && node docs/images/page.mjs
//
// A server of its own, on a free port and with an empty directory; Chromium as for tests/page.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BINARY = process.env.BLACKBOARD_BIN ?? join(ROOT, "target/debug/blackboard");
const { chromium } = createRequire(join(ROOT, "tests/page/harness.mjs"))("playwright-core");
const VIEWS = { timeline: "timeline", past: "past?at=40" };

const data = mkdtempSync(join(tmpdir(), "blackboard-images-"));
const server = spawn(BINARY, ["serve", "--listen", "127.0.0.1:0", "--data", data], { stdio: ["ignore", "pipe", "pipe"] });
try {
  const url = await new Promise((resolve, reject) => {
    let said = "";
    const read = (bytes) => {
      said += bytes;
      const found = /"message":"listening".*?"url":"([^"]+)"/.exec(said)?.[1];
      if (found) resolve(found);
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.on("exit", () => reject(new Error(said)));
  });
  execFileSync(BINARY, ["demo", "demo", "--pace", "0", "--url", url], { stdio: "ignore" });
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  for (const colorScheme of ["light", "dark"]) {
    for (const [name, view] of Object.entries(VIEWS)) {
      const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme, reducedMotion: "reduce" });
      await page.goto(`${url}/ui/#/sessions/demo/${view}`);
      await page.waitForLoadState("load");
      await page.waitForTimeout(2000);
      if (name === "timeline") await page.locator(".main").evaluate((main) => main.scrollBy(0, -800));
      await page.waitForTimeout(1000);
      await page.screenshot({ path: join(ROOT, `docs/images/page-${name}${colorScheme === "dark" ? "-dark" : ""}.png`) });
      await page.close();
    }
  }
  await browser.close();
} finally {
  server.kill();
  rmSync(data, { recursive: true });
}
