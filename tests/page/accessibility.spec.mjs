// Accessibility: every view, in both themes, wide and narrow, without a violation by axe (WCAG A and AA).

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { board, describe } from "./harness.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
/** The time without a change after which a view counts as whole. */
const QUIET_MS = 300;

const BINARY = process.env.BLACKBOARD_BIN ?? "target/debug/blackboard";
const VIEWS = ["sessions", "questions", "search?q=sales", ...["timeline", "timeline?open=requests%2F1", "screenshots", "screenshots?shot=1", "state", "state?path=plan", "prompt", "past", "past?at=20", "agents", "agents?agent=HostAgent", "tasks", "tasks?request=1"].map((view) => `sessions/demo/${view}`)];

/** A session with a request in each state that the demonstration's have not, an open question and messages. */
const TERMS = "terms";
const OF_TERMS = ["tasks", "tasks?request=1", "tasks?request=2&show=graph", "timeline", "timeline?open=questions%2F1", "agents?agent=LinuxAgent"].map((view) => `sessions/${TERMS}/${view}`);

async function terms(server) {
  const as = { "X-Agent-ID": "LinuxAgent" };
  const end = async (seq, how, body) => {
    const { claim } = (await server.put(board(TERMS, "requests", String(seq), "claim"), {}, as)).body;
    await server.put(board(TERMS, "requests", String(seq), how), { fence: claim.fence, ...body }, as);
  };
  for (const query of ["?review=true&priority=5", "?not_before=5h&deadline=9h", "", "?after=3", "?attempts=3"]) {
    await server.post(`${board(TERMS, "requests")}${query}`, { request: "Write the report" }, as);
  }
  await end(1, "failed", { reason: "no network" });
  await end(1, "done", { result: "draft" });
  await end(5, "failed", { reason: "no network" });
  await server.put(board(TERMS, "requests", "3", "cancelled"), { reason: "not needed" }, as);
  await server.post(board(TERMS, "questions"), { question: "Which printer?", options: ["The lobby's", "The one upstairs"] }, as);
  await server.put(board(TERMS, "agents", "LinuxAgent"), {}, as);
  const messages = board(TERMS, "agents", "LinuxAgent", "messages");
  await server.post(messages, [{ text: "Write to the lobby." }, { text: "It is out of paper.", thread: "print", reply_to: 1 }], { "X-Agent-ID": "HostAgent" });
  await server.put(`${messages}/1/ack`, undefined, as);
}

/** Waits until nothing loads and the document stays as it is. */
async function settled(page) {
  await page.waitForFunction(() => !document.querySelector(".skeleton, [aria-busy=true]"));
  await page.evaluate((quiet) => new Promise((done) => {
    const begin = () => setTimeout(() => { watch.disconnect(); done(); }, quiet);
    const watch = new MutationObserver(() => { clearTimeout(timer); timer = begin(); });
    watch.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["src"] });
    let timer = begin();
  }), QUIET_MS);
  await page.waitForFunction(() => [...document.images].every((image) => {
    const { top, bottom } = image.getBoundingClientRect();
    return image.complete || bottom < 0 || top > innerHeight;
  }));
}

/** Runs axe in the page. */
const check = () => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 400]) {
    describe(`axe finds nothing, ${colorScheme}, ${width} px wide`, async (t) => {
      await t.server.get(board("demo")).catch(() => execFileSync(BINARY, ["demo", "demo", "--pace", "0", "--url", t.server.url], { stdio: "ignore" }));
      await t.server.get(board(TERMS)).catch(() => terms(t.server));
      const found = [];
      for (const view of [...VIEWS, ...OF_TERMS]) {
        await t.go(`#/${view}`);
        await settled(t.page);
        if (process.env.PICTURES) await t.page.screenshot({ path: `${process.env.PICTURES}/${view.replaceAll(/\W+/g, "-")}-${colorScheme}-${width}.png` });
        await t.page.addScriptTag({ path: AXE });
        const { violations } = await t.page.evaluate(check);
        for (const one of violations) found.push(`${view}: ${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`).join("\n")}`);
        const wide = await t.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (wide > 0) found.push(`${view} is ${wide} px too wide`);
      }
      await t.page.getByRole("button", { name: "Your name" }).click();
      await t.page.getByRole("dialog", { name: "You" }).getByLabel("Your name").fill("a/b");
      for (const one of (await t.page.evaluate(check)).violations) found.push(`your name: ${one.id}`);
      assert.deepEqual(found, []);
    }, { colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
  }
}

describe("without motion a new height is there at once, so that what is revealed is reached", async (t) => {
  await t.go("#/sessions");
  const heights = await t.page.evaluate(() => {
    const box = document.body.appendChild(document.createElement("div"));
    const height = (pixels) => {
      box.style.height = `${pixels}px`;
      return box.offsetHeight;
    };
    return [height(10), height(1000)];
  });
  assert.deepEqual(heights, [10, 1000]);
});
