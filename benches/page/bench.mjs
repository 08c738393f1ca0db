// Figures of the page: each measured in several rounds, the median beside its bound.

import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { cold, heap, launch, longestTask, until } from "./browser.mjs";
import { ENTRIES, fillLarge, fillPast, fillPrompt, fillState, NEWEST, SHOTS, stream } from "./fill.mjs";
import { binary, Server } from "./server.mjs";

const LEAVES = 30_000;
const REVISIONS = 100_000;
const PROMPT_BYTES = 5_000_000;
const EVENTS = 1000;
const EVENTS_MS = 10_000;

/** The figures in the order of the table: name, unit and bound. */
const FIGURES = {
  "timeline.interactive": ["Timeline of 10,000 entries: newest entries shown and a key answered", "ms", 1000],
  "gallery.interactive": ["Gallery of 500 screenshots: newest shown and a click answered", "ms", 1000],
  "timeline.load": ["Timeline, longest task while it loads", "ms", 100],
  "heap.open": ["JS heap of the open timeline", "MB", 150],
  "heap.open.collected": ["The same, collected", "MB", 150],
  "heap.scrolled": ["JS heap after scrolling to the session's start and back", "MB", 150],
  "heap.scrolled.collected": ["The same, collected", "MB", 150],
  "scroll.task": ["Longest task on that way", "ms", 100],
  "stream.bottom": ["1,000 events in 10 s at the timeline's end, longest task", "ms", 100],
  "stream.above": ["The same while one reads further up, all 10,000 entries loaded", "ms", 100],
  "state.interactive": ["State of 30,000 leaves: shown and a key answered", "ms", 1000],
  "state.task": ["State, longest task while it loads", "ms", 100],
  "past.slider": ["Past of 100,000 revisions: slider and board shown", "ms", 1000],
  "past.task": ["Past, longest task until steps' and checkpoints' marks are shown", "ms", 100],
  "prompt.task": ["“Show all” of a prompt of 5 MB, longest task", "ms", 100],
};

const samples = new Map();

function add(key, value, cpu) {
  const known = samples.get(key) ?? [];
  known.push({ value, cpu });
  samples.set(key, known);
  console.error(`  ${key} ${value.toFixed(1)} ${FIGURES[key][1]}${cpu === undefined ? "" : `, ${cpu.toFixed(1)} ms of the processor`}`);
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function report() {
  const rows = [["figure", "median", "bound", "holds", "each round", "of the processor"]];
  let missed = 0;
  for (const [key, [name, unit, bound]] of Object.entries(FIGURES)) {
    const found = samples.get(key);
    if (!found) continue;
    const digits = unit === "MB" ? 1 : 0;
    const value = median(found.map((one) => one.value));
    if (value > bound) missed += 1;
    const cpus = found.map((one) => one.cpu).filter((cpu) => cpu !== undefined);
    rows.push([
      name, `${value.toFixed(digits)} ${unit}`, `at most ${bound} ${unit}`, value > bound ? "**no**" : "yes", found.map((one) => one.value.toFixed(digits)).join(", "),
      cpus.length > 0 ? `${median(cpus).toFixed(0)} ms` : "",
    ]);
  }
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  const line = (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i])).join(" | ")} |`;
  console.log([line(rows[0]), line(widths.map((width) => "-".repeat(width))), ...rows.slice(1).map(line)].join("\n"));
  return missed;
}

/** True in the page if the timeline's newest entry is in the visible part. */
function newestIsShown(newest) {
  const last = [...document.querySelectorAll("[data-group] a.title")].findLast((link) => link.textContent.includes(newest));
  return last !== undefined && last.getBoundingClientRect().top < innerHeight;
}

const SECTIONS = {
  async timeline({ browser, at, rounds }) {
    const session = at.large;
    for (let round = 0; round < rounds; round += 1) {
      await cold(browser, async (page) => {
        await page.goto(at.view("timeline", session), { waitUntil: "commit" });
        await until(page, newestIsShown, NEWEST);
        await page.keyboard.press("k");
        add("timeline.interactive", await until(page, () => document.activeElement?.matches("a.title")));
      });
      await cold(browser, async (page) => {
        await page.goto(at.view("screenshots", session), { waitUntil: "commit" });
        const tile = page.locator(`.tile[data-seq="${SHOTS}"] a`);
        await tile.waitFor();
        await tile.click();
        add("gallery.interactive", await until(page, () => document.querySelector(".screenshots.viewing img") !== null));
      });
      await cold(browser, async (page) => {
        const load = await longestTask(browser, page, async () => {
          await page.goto(at.view("timeline", session), { waitUntil: "commit" });
          await until(page, newestIsShown, NEWEST);
          await page.waitForTimeout(1500);
        });
        add("timeline.load", load.wall, load.cpu);
        const open = await heap(page);
        add("heap.open", open.before);
        add("heap.open.collected", open.after);
        const task = await longestTask(browser, page, async () => {
          await toStart(page);
          await page.keyboard.press("End");
          await until(page, newestIsShown, NEWEST);
        });
        add("scroll.task", task.wall, task.cpu);
        const scrolled = await heap(page);
        add("heap.scrolled", scrolled.before);
        add("heap.scrolled.collected", scrolled.after);
      });
    }
  },

  async stream({ browser, server, at, rounds }) {
    let from = ENTRIES;
    for (let round = 0; round < rounds; round += 1) {
      for (const where of ["bottom", "above"]) {
        const session = `${at.large}-live`;
        await cold(browser, async (page) => {
          await page.goto(at.view("timeline", session));
          await page.locator("[data-group]").first().waitFor();
          if (where === "above") {
            await toStart(page);
            await page.evaluate(() => document.querySelector(".main").scrollTo(0, 20_000));
          }
          const last = `last of round ${round} ${where}`;
          const task = await longestTask(browser, page, async () => {
            await stream(server, session, EVENTS, EVENTS_MS, from);
            await server.send("POST", `/v1/sessions/${session}/requests`, { request: last }, "HostAgent");
            // Both show what came: the entry itself, or the number of new ones.
            if (where === "bottom") await until(page, newestIsShown, last);
            else await until(page, () => Number(/[\d,]+(?= new)/.exec(document.querySelector(".pill")?.textContent ?? "0")?.[0].replace(",", "")) > 500);
            await page.waitForTimeout(500);
          });
          add(`stream.${where}`, task.wall, task.cpu);
        });
        from += EVENTS;
      }
    }
  },

  async state({ browser, at, rounds }) {
    for (let round = 0; round < rounds; round += 1) {
      await cold(browser, async (page) => {
        const task = await longestTask(browser, page, async () => {
          await page.goto(at.view("state", "leaves"), { waitUntil: "commit" });
          await page.locator('[role="treeitem"]').first().waitFor();
          await page.waitForTimeout(1000);
        });
        add("state.task", task.wall, task.cpu);
      });
      await cold(browser, async (page) => {
        await page.goto(at.view("state", "leaves"), { waitUntil: "commit" });
        await page.locator('[role="treeitem"]').first().waitFor();
        await page.locator('[role="tree"]').focus();
        await page.keyboard.press("ArrowDown");
        add("state.interactive", await until(page, () => document.querySelector('[role="treeitem"][aria-selected="true"]') !== null));
      });
    }
  },

  async past({ browser, at, rounds }) {
    for (let round = 0; round < rounds; round += 1) {
      await cold(browser, async (page) => {
        const task = await longestTask(browser, page, async () => {
          await page.goto(at.view("past", "revisions"), { waitUntil: "commit" });
          add("past.slider", await until(page, (head) => Number(document.querySelector(".past-slider input[type=range]")?.max) >= head && document.querySelector(".past-slider ~ *") !== null, REVISIONS));
          await until(page, () => document.querySelectorAll(".mark-failure").length > 50 && document.querySelectorAll(".mark-checkpoint").length > 50);
          await page.waitForTimeout(1000);
        });
        add("past.task", task.wall, task.cpu);
      });
    }
  },

  async prompt({ browser, at, rounds }) {
    for (let round = 0; round < rounds; round += 1) {
      await cold(browser, async (page) => {
        await page.goto(at.view("prompt", "prompt"));
        const button = page.getByRole("button", { name: /^Show all .* MB/ });
        await button.waitFor();
        await page.waitForTimeout(500);
        const task = await longestTask(browser, page, async () => {
          await button.click();
          await until(page, (chars) => [...document.querySelectorAll(".prompt-part .body")].some((body) => body.textContent.length >= chars), PROMPT_BYTES * 0.9);
          await page.waitForTimeout(500);
        });
        add("prompt.task", task.wall, task.cpu);
      });
    }
  },
};

/** Scrolls up until the session's first entry is there. */
async function toStart(page) {
  for (;;) {
    await page.evaluate(() => document.querySelector(".main").scrollTo(0, 0));
    if (await page.getByText("The session begins here.").isVisible()) return;
    await page.waitForTimeout(20);
  }
}

const FILLS = {
  timeline: (server) => fillLarge(server, "large"),
  stream: (server) => fillLarge(server, "large-live"),
  state: (server) => fillState(server, "leaves", LEAVES),
  past: (server) => fillPast(server, "revisions", REVISIONS),
  prompt: (server) => fillPrompt(server, "prompt", PROMPT_BYTES),
};

export async function main(given) {
  const { values, positionals } = parseArgs({ args: given, options: { rounds: { type: "string", default: "5" } }, allowPositionals: true });
  const rounds = Number(values.rounds);
  const unknown = positionals.filter((name) => !(name in SECTIONS));
  if (unknown.length > 0 || !(rounds >= 1)) throw new Error(`benches/page/run [--rounds N] [${Object.keys(SECTIONS).join("] [")}]`);
  const chosen = positionals.length > 0 ? positionals : Object.keys(SECTIONS);
  const path = await binary();
  const server = await Server.start(path);
  let browser;
  try {
    browser = await launch();
    const version = execFileSync(path, ["--version"], { encoding: "utf8" }).trim();
    console.log(`${version} (${path})${process.env.BLACKBOARD_PAGE ? `, page of ${process.env.BLACKBOARD_PAGE}` : ""}; Chromium ${browser.version()}; ${rounds} rounds\n`);
    const at = { large: "large", view: (view, session) => `${server.url}/ui/#/sessions/${session}/${view}` };
    for (const name of chosen) {
      console.error(`${name}: filling`);
      await FILLS[name](server);
      console.error(`${name}: measuring`);
      await SECTIONS[name]({ browser, server, at, rounds });
    }
  } finally {
    await browser?.close();
    await server.stop();
  }
  if (report() > 0) process.exitCode = 1;
}
