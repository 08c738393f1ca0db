// A picture of a session's timeline: node timeline.mjs URL SESSION TOKEN PICTURE
//
// Logs in with the token, as a person does. Chromium as for tests/page.

import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { chromium } = createRequire(join(ROOT, "tests/page/harness.mjs"))("playwright-core");
const [url, session, token, picture] = process.argv.slice(2);

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1760 }, reducedMotion: "reduce" });
  await page.goto(`${url}/ui/#/sessions/${session}/timeline`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("Send the report").first().waitFor();
  await page.screenshot({ path: picture });
} finally {
  await browser.close();
}
