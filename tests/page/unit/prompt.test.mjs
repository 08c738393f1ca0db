// Parts of a prompt and their shares, the difference of texts, and a search's snippets.

import assert from "node:assert/strict";
import test from "node:test";

import { lineDiff } from "../../../crates/ui/page/core/lines.js";
import { asText, imageSource, partsOf, promptQuery, shares, viewQuery } from "../../../crates/ui/page/core/prompt/parts.js";
import { entryOf, highlighted, pieces, searchQuery, textKeys } from "../../../crates/ui/page/core/search.js";

const PNG = "data:image/png;base64,AAAA";

test("every format has the same headings, texts and images", () => {
  const formats = {
    parts: [{ type: "text", text: "[Blackboard:]" }, { type: "text", text: '[Request History:]\n [{"a": 1}]' }, { type: "image_url", image_url: { url: PNG } }],
    responses: [{ type: "input_text", text: "[Blackboard:]" }, { type: "input_text", text: '[Request History:]\n [{"a": 1}]' }, { type: "input_image", image_url: PNG }],
    anthropic: [{ type: "text", text: "[Blackboard:]" }, { type: "text", text: '[Request History:]\n [{"a": 1}]' }, { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }],
    gemini: [{ text: "[Blackboard:]" }, { text: '[Request History:]\n [{"a": 1}]' }, { inlineData: { mimeType: "image/png", data: "AAAA" } }],
  };
  for (const [name, body] of Object.entries(formats)) {
    const [first, list, image] = partsOf(body, "");
    assert.deepEqual([first.heading, first.text, list.heading, list.text], ["Blackboard", "", "Request History", '[{"a": 1}]'], name);
    assert.deepEqual([image.kind, image.src, image.type, image.bytes], ["image", PNG, "image/png", 3], name);
  }
  const [top, section] = partsOf(undefined, "# Blackboard\n\n## Request History\n\n- **a:** 1\n");
  assert.deepEqual([top.heading, section.heading, section.text], ["Blackboard", "Request History", "- **a:** 1"]);
});

test("an image is loaded from data or from this server's screenshots alone", () => {
  assert.equal(imageSource(PNG), PNG);
  assert.equal(imageSource("/v1/sessions/a/screenshots/1/image"), "/v1/sessions/a/screenshots/1/image");
  assert.equal(imageSource("https://board.example.org/v1/sessions/a/screenshots/1/image?sig=x"), "/v1/sessions/a/screenshots/1/image?sig=x");
  for (const bad of ["javascript:alert(1)", "https://example.org/x.png", "data:text/html;base64,AAAA", "data:image/svg+xml;base64,AAAA", "/v1/sessions"]) {
    assert.equal(imageSource(bad), undefined, bad);
  }
});

test("texts share by their bytes, images have what remains", () => {
  const parts = partsOf([{ text: "[State:]\n " + "x".repeat(390) }, { text: "[Request History:]\n" + "é".repeat(90) }, { inlineData: { mimeType: "image/png", data: "AAAA" } }], "");
  const found = shares(parts, 1000);
  assert.deepEqual(found.map((one) => one.name), ["State", "Request History", "1 image"]);
  assert.equal(Math.round(found.reduce((sum, one) => sum + one.tokens, 0)), 1000);
  assert.equal(found[0].tokens, 100);
  assert.equal(asText(parts).split("\n\n").length, 3);
});

test("the page asks with images by address and for the estimate; a wish and a profile stand", () => {
  assert.deepEqual(viewQuery({}), { images: "url", max_tokens: 100_000_000 });
  assert.equal(viewQuery({ profile: "p" }).images, undefined);
  assert.deepEqual(promptQuery({ latest: "3", from: "9", text: "x", at: "" }), { latest: "3" });
});

test("a difference is unified, with context and folds", () => {
  const before = Array.from({ length: 50 }, (_, i) => `line ${i}`);
  const after = [...before.slice(0, 25), "new", ...before.slice(26), "end"];
  const { lines, added, removed } = lineDiff(before.join("\n"), after.join("\n"));
  assert.deepEqual([added, removed], [2, 1]);
  assert.deepEqual(lines.map((line) => (line.kind === "fold" ? `fold ${line.count}` : `${line.kind[0]} ${line.text}`)), [
    "fold 22", "s line 22", "s line 23", "s line 24", "r line 25", "a new", "s line 26", "s line 27", "s line 28",
    "fold 18", "s line 47", "s line 48", "s line 49", "a end",
  ]);
  assert.deepEqual(lineDiff("a\nb", "a\nb").added, 0);
});

test("a snippet is split into plain pieces", () => {
  assert.deepEqual(pieces('&lt;script&gt; "x" &amp;amp; <mark>zebra</mark>'), [{ text: '<script> "x" &amp; ', marked: false }, { text: "zebra", marked: true }]);
  assert.equal(entryOf({ log: "memory", agent: "A", seq: 2 }), "agents/A/memory/2");
  assert.equal(searchQuery({ q: "  " }), undefined);
  assert.equal(searchQuery({ q: "a", since: "1h" }, { now: 3_600_000 * 2 }).since, "1970-01-01T01:00:00.000Z");
});

test("a text has the marks of its snippet, at whole words, or within a run of letters where the index matches there", () => {
  const marked = (text, snippet) => highlighted(text, pieces(snippet)).map((piece) => (piece.marked ? `[${piece.text}]` : piece.text)).join("");
  assert.equal(marked("打开文件夹", "打开<mark>文件</mark>夹"), "打开[文件]夹");
  assert.equal(marked("온라인게임을 했다", "온라인<mark>게임</mark>을 했다"), "온라인[게임]을 했다");
  assert.equal(marked("ไทยแลนด์", "<mark>ไทย</mark>แลนด์"), "[ไทย]แลนด์");
  assert.equal(marked("サーバーを開く", "<mark>サーバー</mark>を<mark>開</mark>く"), "[サーバー]を[開]く");
  assert.equal(marked("USB接続", "<mark>USB</mark>接続"), "[USB]接続");
  assert.equal(marked("文 文件", "<mark>文</mark> <mark>文件</mark>"), "[文] [文件]");
  assert.equal(marked("The cat in the catalogue, cat9", "The <mark>cat</mark> in"), "The [cat] in the catalogue, cat9");
  assert.equal(marked("a (b+) c", "a <mark>(b+)</mark> c"), "a [(b+)] c");
});

test("the members that are read of an entry are those that its text is made of", () => {
  assert.equal(textKeys("questions"), "question,Question,text,Text");
  assert.match(textKeys("screenshots"), /^metadata,Metadata,image_path,/);
  assert.equal(textKeys("requests"), undefined);
});
