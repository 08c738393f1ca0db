// Feed of a session beyond its retained history: entries of the logs as commits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Feed } from "../../../crates/ui/page/core/feed.js";
import { Groups, rows } from "../../../crates/ui/page/core/timeline.js";

const AT = (n) => new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString();

/** A feed of a session at revision `at`, of which no commit is kept. `page(log, query)` gives the entries of a page. */
function feedOf(t, at, page) {
  t.mock.method(globalThis, "fetch", async (path) => {
    const url = new URL(path, "http://board");
    const log = url.pathname.split("/").at(-1);
    const body = log === "agents" ? { agents: [] } : page(log, url.searchParams);
    return body ? Response.json(body) : Response.json({ code: "overloaded" }, { status: 503 });
  });
  const feed = new Feed("s");
  feed.cursor = at;
  feed.oldest.value = at;
  return feed;
}

test("a page that fails loses no entry", async (t) => {
  let isBusy = true;
  const entry = (seq) => ({ seq, at: AT(seq), revision: seq, item: { step: seq } });
  const feed = feedOf(t, 10, (log, query) => {
    if (log !== "trajectories") return { entries: [], more: false };
    if (!query.has("before")) return { entries: [10, 9, 8, 7, 6].map(entry), more: true, next: 6 };
    return isBusy ? undefined : { entries: [5, 4, 3, 2, 1].map(entry), more: false };
  });
  assert.equal(await feed.older(), false);
  assert.equal(feed.problem.value.status, 503);
  assert.ok(!feed.atStart && feed.below.length === 0);
  isBusy = false;
  await feed.older();
  assert.deepEqual(feed.below.flatMap(rows).map((row) => row.seq), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  assert.ok(feed.atStart);
});

test("entries of one commit are rows and groups of their own, also if they were changed later", async (t) => {
  const done = { agent: "B", at: AT(9), result: 1 };
  const requests = [3, 2, 1].map((seq) => ({ seq, at: AT(1), revision: seq === 3 ? 1 : 2, item: {}, ...(seq < 3 && { done, updated_at: AT(9) }) }));
  const feed = feedOf(t, 2, (log) => ({ entries: log === "requests" ? requests : [], more: false }));
  await feed.older();
  const groups = new Groups();
  groups.push(feed.below);
  for (const ids of [feed.below.flatMap(rows).map((row) => row.id), groups.list.map((group) => group.key)]) assert.deepEqual(ids, [...new Set(ids)]);
  assert.deepEqual(groups.list.map((group) => group.rows.map((row) => row.type)), [["request", "done"], ["request", "done"], ["request"]]);
});
