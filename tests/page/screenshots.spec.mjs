// View Screenshots: a windowed gallery that follows, one image enlarged, two compared.

import assert from "node:assert/strict";
import { deflateSync, crc32 } from "node:zlib";
import { describe, board } from "./harness.mjs";

/** A PNG of one colour as a data URL. */
function png(width, height, [red, green, blue]) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([red, green, blue]))]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)));
  const bytes = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
  return `data:image/png;base64,${bytes.toString("base64")}`;
}

const item = (n, metadata = `step ${n}`) => ({ metadata, image_path: `shots/${n}.png`, image_str: png(64, 40, [n * 40 % 256, 90, 160]) });
const post = (t, session, items, agent) => t.server.post(board(session, "screenshots"), items, agent ? { "X-Agent-ID": agent } : {});
const tiles = (t) => t.page.getByRole("list", { name: "Screenshots" }).getByRole("listitem");
const fresh = (name) => `${name}-${process.pid}`;

describe("the gallery shows metadata, filters by agent and orders both ways", async (t) => {
  const session = fresh("gallery");
  await post(t, session, [item(1), item(2)], "HostAgent");
  await post(t, session, [item(3, { window: "Excel" })], "ExcelAgent");
  await post(t, session, [{ metadata: null, image_path: "https://example.com/x.png", image_str: "" }], "ExcelAgent");
  const asked = [];
  t.page.on("request", (request) => asked.push(request.url()));
  await t.go(`#/sessions/${session}/screenshots`);
  await tiles(t).nth(3).waitFor();
  assert.match(await tiles(t).nth(0).innerText(), /https:\/\/example\.com\/x\.png/);
  assert.match(await tiles(t).nth(1).innerText(), /ExcelAgent[\s\S]*window: Excel[\s\S]*#3 · 64 × 40/);
  assert.ok(asked.every((url) => new URL(url).hostname !== "example.com"), "a label is never fetched");
  assert.ok(asked.some((url) => /screenshots\/3\/image\?max_px=\d+$/.test(url)), "thumbnails are small");
  await t.page.getByLabel("Order").selectOption("oldest");
  await tiles(t).first().getByText("step 1").waitFor();
  await t.page.getByLabel("Agent", { exact: true }).selectOption("HostAgent");
  await t.page.getByText("2 screenshots of 4").waitFor();
  assert.equal(await tiles(t).count(), 2);
  assert.match(t.page.url(), /order=oldest&agent=HostAgent/);
});

describe("ten times the screen is scrolled with few tiles in the document", async (t) => {
  const session = fresh("many");
  const many = Array.from({ length: 700 }, (_, i) => ({ metadata: `m${i + 1}`, image_path: `${i + 1}.png`, image_str: "" }));
  await post(t, session, many);
  await t.go(`#/sessions/${session}/screenshots`);
  await tiles(t).first().getByText("m700").waitFor();
  for (let last = 0; ; ) {
    await t.page.locator("main").evaluate((main) => (main.scrollTop = main.scrollHeight));
    if (await t.page.getByText("#1 · no image").count()) break;
    const count = await tiles(t).count();
    assert.ok(count < 80, `${count} tiles`);
    last += 1;
    assert.ok(last < 500, "the first screenshot is reached");
    await t.page.evaluate(() => new Promise(requestAnimationFrame));
  }
});

describe("new screenshots are shown at the top, and wait while one looks elsewhere", async (t) => {
  const session = fresh("live");
  await post(t, session, Array.from({ length: 60 }, (_, i) => item(i + 1)), "HostAgent");
  await t.go(`#/sessions/${session}/screenshots`);
  await tiles(t).first().getByText("step 60").waitFor();
  await post(t, session, [item(61)], "HostAgent");
  await tiles(t).first().getByText("step 61").waitFor();
  await t.page.locator("main").evaluate((main) => (main.scrollTop = 900));
  await t.page.getByText("step 41").first().waitFor();
  const before = await t.page.locator('[data-seq="41"]').boundingBox();
  await post(t, session, [item(62)], "HostAgent");
  const pill = t.page.getByRole("button", { name: "1 new screenshot" });
  await pill.waitFor();
  assert.equal((await t.page.locator('[data-seq="41"]').boundingBox()).y, before.y);
  await pill.click();
  await tiles(t).first().getByText("step 62").waitFor();
});

describe("a large image zooms, moves on by arrow keys and goes back to its tile", async (t) => {
  const session = fresh("large");
  await post(t, session, [item(1), item(2), item(3)], "HostAgent");
  await t.go(`#/sessions/${session}/screenshots?shot=2`);
  const pane = (n) => t.page.getByRole("group", { name: `Screenshot ${n}`, exact: true });
  await pane(2).getByRole("img").waitFor();
  const side = t.page.getByRole("complementary", { name: "About this screenshot" });
  assert.match(await side.innerText(), /HostAgent[\s\S]*64 × 40[\s\S]*image\/png[\s\S]*shots\/2\.png[\s\S]*step 2/);
  await side.getByRole("listitem").first().waitFor();
  assert.match(await side.getByRole("listitem").first().getByRole("link").first().getAttribute("href"), /timeline\?around=\d+$/);
  const scale = async (n) => Number(await pane(n).getAttribute("data-scale"));
  assert.equal(await scale(2), 1);
  await t.page.keyboard.press("+");
  await t.page.getByText("125 %").waitFor();
  await t.page.keyboard.press("-");
  await t.page.keyboard.press("-");
  await t.page.getByText("80 %").waitFor();
  await t.page.keyboard.press("0");
  await t.page.getByRole("button", { name: "Fit", exact: true, pressed: true }).waitFor();
  await pane(2).hover();
  await t.page.mouse.wheel(0, -300);
  await t.page.getByRole("button", { name: "Fit", exact: true, pressed: false }).waitFor();
  assert.ok((await scale(2)) > 1.2);
  await t.page.getByRole("button", { name: "Later screenshot" }).and(t.page.locator(":enabled")).waitFor();
  await t.page.keyboard.press("ArrowRight");
  await pane(3).waitFor();
  assert.match(t.page.url(), /shot=3/);
  await t.page.getByRole("button", { name: "Earlier screenshot" }).and(t.page.locator(":enabled")).waitFor();
  await t.page.keyboard.press("ArrowLeft");
  await pane(2).waitFor();
  await t.page.keyboard.press("Escape");
  await tiles(t).nth(2).waitFor();
  assert.equal(await t.page.evaluate(() => document.activeElement.closest("[data-seq]")?.dataset.seq), "2");
});

describe("two screenshots are compared side by side and as a difference", async (t) => {
  const session = fresh("both");
  await post(t, session, [item(1), item(2), item(3)]);
  await t.go(`#/sessions/${session}/screenshots`);
  await t.page.getByRole("button", { name: "Choose screenshot 3 to compare" }).click();
  await t.page.getByText("Screenshot 3 is chosen").waitFor();
  await t.page.getByRole("button", { name: "Choose screenshot 1 to compare" }).click();
  const pane = (name) => t.page.getByRole("group", { name, exact: true });
  await pane("Screenshot 3").waitFor();
  await pane("Screenshot 1").waitFor();
  assert.match(t.page.url(), /shot=3&with=1/);
  await t.page.keyboard.press("+");
  await t.page.getByText("125 %").waitFor();
  assert.equal(await pane("Screenshot 3").getAttribute("data-scale"), await pane("Screenshot 1").getAttribute("data-scale"));
  await t.page.getByRole("button", { name: "Difference" }).click();
  await pane("Screenshot 3 and 1: difference").waitFor();
  await t.page.getByRole("button", { name: "One", exact: true }).click();
  await pane("Screenshot 3").waitFor();
  assert.equal(await pane("Screenshot 1").count(), 0);
});

describe("a screenshot that is gone, and a session without any, are explained", async (t) => {
  const session = fresh("none");
  await t.server.put(board(session), {});
  await t.go(`#/sessions/${session}/screenshots`);
  await t.page.getByText("No screenshots yet").waitFor();
  await t.go(`#/sessions/${session}/screenshots?shot=9`);
  await t.page.getByText("Screenshot 9 does not exist now").waitFor();
});

describe("an SVG with a script as a label, or as an image, does nothing", async (t) => {
  const session = `svg-${process.pid}`;
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked=1"><script>window.hacked=1</script></svg>';
  const address = `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`;
  await post(t, session, [{ metadata: svg, image_path: svg, image_str: "" }, { metadata: "an image", image_path: "javascript:window.hacked=1", image_str: address }], "ExcelAgent");
  await t.go(`#/sessions/${session}/screenshots`);
  await tiles(t).nth(1).filter({ hasText: "onload" }).waitFor();
  await t.go(`#/sessions/${session}/screenshots?shot=1`);
  await t.page.getByText("onload").first().waitFor();
  assert.equal(await t.page.evaluate(() => window.hacked), undefined);
  assert.equal(await t.page.locator("a[href^='javascript:'], svg[onload], .main script").count(), 0);
});

describe("an image that is kept as text is shown, and one that is damaged is named", async (t) => {
  const session = fresh("kept");
  const spaced = png(64, 40, [10, 90, 160]).replace("base64,", "base64,\n");
  await t.server.post(board(session, "screenshots"), { metadata: "spaced", image_str: spaced });
  await t.server.post(board(session, "screenshots"), { metadata: "damaged", image_str: spaced.slice(0, 60) });
  await t.go(`#/sessions/${session}/screenshots?order=oldest`);
  const first = t.page.locator("[data-seq='1']");
  await first.getByText("kept as text").waitFor();
  await t.page.waitForFunction(() => document.querySelector("[data-seq='1'] img")?.naturalWidth > 0);
  await t.page.locator("[data-seq='2']").getByTitle("The image cannot be shown").waitFor();
  await t.go(`#/sessions/${session}/timeline`);
  await t.page.waitForFunction(() => document.querySelector(".shot img")?.naturalWidth > 0);
  assert.equal(await t.page.getByText("base64").count(), 0);
  await t.go(`#/sessions/${session}/screenshots?shot=1`);
  await t.page.waitForFunction(() => document.querySelector(".pane-image")?.naturalWidth > 0);
  await t.page.getByText("it has no address").waitFor();
});
