// Browser measurements: cold page loads, the heap, and the main thread's longest task from the browser's trace.

import { createRequire } from "node:module";

const { chromium } = createRequire(new URL("../../tests/page/", import.meta.url))("playwright-core");

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const STEP_MS = 60_000;
const CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"];

export function launch() {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"] });
}

/** Opens an empty page in a profile of its own, without a cache, and runs `use(page)`. */
export async function cold(browser, use) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(STEP_MS);
    const wrong = [];
    page.on("pageerror", (error) => wrong.push(error.stack ?? String(error)));
    const result = await use(page);
    if (wrong.length > 0) throw new Error(`the page failed: ${wrong.join("\n")}`);
    return result;
  } finally {
    await context.close();
  }
}

/** Waits until `condition` (a function in the page) holds, looking at each frame. Returns the milliseconds since the navigation began. */
export async function until(page, condition, arg) {
  const handle = await page.waitForFunction(condition, arg, { polling: "raf" });
  await handle.dispose();
  return page.evaluate(() => performance.now());
}

/** The JS heap in MB: as it is, by `performance.memory`, and once it was collected. */
export async function heap(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable");
  const used = async () => (await cdp.send("Performance.getMetrics")).metrics.find((one) => one.name === "JSHeapUsedSize").value / 1e6;
  const before = Math.max(await used(), await page.evaluate(() => performance.memory.usedJSHeapSize / 1e6));
  await cdp.send("HeapProfiler.enable");
  await cdp.send("HeapProfiler.collectGarbage");
  const after = await used();
  await cdp.detach();
  return { before, after };
}

/** The longest tasks in milliseconds of the renderer's main thread while `work` runs: on the clock, and of the processor. */
export async function longestTask(browser, page, work) {
  await browser.startTracing(page, { categories: CATEGORIES });
  let buffer;
  try {
    await work();
  } finally {
    buffer = await browser.stopTracing();
  }
  const { traceEvents } = JSON.parse(buffer.toString());
  if (process.env.TRACE) await (await import("node:fs/promises")).writeFile(process.env.TRACE, buffer);
  const mains = new Set(traceEvents.filter((one) => one.name === "thread_name" && one.args.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
  const tasks = traceEvents.filter((one) => one.ph === "X" && /RunTask$/.test(one.name) && mains.has(`${one.pid} ${one.tid}`));
  if (tasks.length === 0) throw new Error("the trace has no tasks");
  const longest = tasks.reduce((most, one) => (one.dur > most.dur ? one : most));
  return { wall: longest.dur / 1000, cpu: Math.max(...tasks.map((one) => one.tdur ?? 0)) / 1000 };
}
