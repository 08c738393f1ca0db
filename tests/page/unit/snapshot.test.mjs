// HTML file of a session: every value is a text in it, and bounded.

import assert from "node:assert/strict";
import { test } from "node:test";
import { JSON_CHARS_MAX, markup, snapshotDocument } from "../../../crates/ui/page/core/snapshot/document.js";

const AT = "2026-11-25T10:00:00.000Z";

function entry(seq, item, more = {}) {
  return { seq, revision: seq, at: AT, agent: "HostAgent", item, ...more };
}

function made(logs, more = {}) {
  const whole = Object.fromEntries(["questions", "requests", "trajectories", "screenshots"].map((log) => [log, { count: logs[log]?.length ?? 0, entries: logs[log] ?? [] }]));
  const read = { agents: [], state: "{}", logs: whole, images: new Map(), left: 0, ...more };
  return snapshotDocument({ session: "a<b>", revision: 7, server: "http://127.0.0.1:8733", made: AT, read });
}

test("values are escaped, templates are joined", () => {
  assert.equal(String(markup`<p title="${'"'}">${"<b>&'"}${[markup`<i>${1}</i>`, undefined, false]}</p>`), '<p title="&quot;">&lt;b&gt;&amp;&#39;<i>1</i></p>');
  assert.equal(String(markup`${"a\0b\ud800"}`), "a\ufffdb\ufffd");
});

test("no value of a board becomes markup", () => {
  const bad = '</pre><script>alert(1)</script><img src=x onerror="alert(1)">';
  const text = made(
    { requests: [entry(1, { request: bad }, { agent: bad, claim: { agent: bad } })], questions: [entry(2, { question: bad, answer: bad })], trajectories: [entry(3, { thought: bad, action: { [bad]: bad }, status: bad })], screenshots: [entry(4, { metadata: bad, image_path: bad })] },
    { agents: [{ agent: bad, status: bad }], state: JSON.stringify({ [bad]: bad }), images: new Map([[4, `data:image/png;base64,"><script>`]]) },
  );
  assert.doesNotMatch(text, /<script|<img(?! src="data:image\/png;base64,&quot;&gt;&lt;script&gt;" alt="Screenshot 4">)|<[^>]*onerror/);
  assert.match(text, /<title>a&lt;b&gt; at revision 7<\/title>/);
  assert.match(text, /default-src 'none'/);
});

test("a long entry is cut, and says so", () => {
  const text = made({ requests: [entry(1, { request: "x".repeat(1_000_000) })] });
  assert.ok(text.length < JSON_CHARS_MAX + 20_000, text.length);
  assert.match(text, /characters more/);
});

test("what is left out is told", () => {
  const text = made({}, { left: 3, logs: { requests: { count: 9000, entries: [entry(9000, { request: "r" })] }, questions: { count: 0, entries: [] }, trajectories: { count: 0, entries: [] }, screenshots: { count: 0, entries: [] } } });
  assert.match(text, /Of 9,000 requests the last 1 are here/);
  assert.match(text, /3 images left out/);
});
