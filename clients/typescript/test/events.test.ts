/** Events: each commit once and in order, over broken connections, kills and gaps. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { createClient, HistoryGap, Problem } from "agent-blackboard";
import type { BoardEvent, Client, EventsOptions } from "agent-blackboard";

import { greeting, http, startCuttingProxy, startForeign } from "./network.js";
import { append, numbers, startServer } from "./server.js";

/** Returns the next events, this many. */
async function take<Event>(events: AsyncIterable<Event>, count: number): Promise<Event[]> {
  const taken: Event[] = [];
  for await (const event of events) {
    taken.push(event);
    if (taken.length === count) break;
  }
  return taken;
}

/** Returns the numbers of the appended items, as `append` writes them. */
function appended(events: readonly BoardEvent[]): unknown[] {
  const entries = events.flatMap(({ changes }) => changes.flatMap((change) => change.entries ?? []));
  return entries.map(({ item }) => item["n"]);
}

function follow(client: Client, options: Omit<EventsOptions, "onGap"> = {}): AsyncGenerator<BoardEvent> {
  return client.events("events", { after: 0, ...options });
}

test("stored commits come first, then new ones", async (t) => {
  const client = (await startServer(t)).client();
  await append(client, "events", 0, 3);
  const events = follow(client);
  assert.deepEqual(appended(await take(events, 3)), [0, 1, 2]);
  const [first] = await take(follow(client), 1);
  assert(first !== undefined);
  assert.equal(first.revision, 1);
  assert.equal(first.kind, "transaction");
  assert.deepEqual(
    first.changes.map(({ kind }) => kind),
    ["created", "appended"],
  );
  const live = take(follow(client, { after: 3 }), 2);
  await append(client, "events", 3, 5);
  assert.deepEqual(appended(await live), [3, 4]);
});

test("without a cursor the events begin with the first request", async (t) => {
  const server = await startServer(t);
  const client = server.client();
  await append(client, "events", 0, 2);
  // The connection is there once its head is, which the server's own fetch tells.
  let connected = () => {};
  const isConnected = new Promise<void>((resolve) => (connected = resolve));
  const watched = client.withOptions({
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (response.headers.get("Content-Type") === "text/event-stream") connected();
      return response;
    },
  });
  const live = take(watched.events("events"), 1);
  await isConnected;
  await append(client, "events", 2, 3);
  assert.deepEqual(appended(await live), [2]);
});

test("events are filtered by part and by agent", async (t) => {
  const client = (await startServer(t)).client({ agent: "one" });
  await append(client, "events", 0, 1);
  const params = { path: { session: "events", path: "a/b" } };
  await client.PUT("/v1/sessions/{session}/state/{path}", { params, body: 1 });
  await append(client.withOptions({ agent: "two" }), "events", 1, 2);
  await append(client, "events", 2, 3);
  assert.deepEqual(appended(await take(follow(client, { agent: "two", on: ["trajectories"] }), 1)), [1]);
  const [state] = await take(follow(client, { after: 1, on: ["state/a", "questions"] }), 1);
  assert.equal(state?.changes[0]?.path, "a/b");
});

test("a session that does not exist yet is waited for", async (t) => {
  const client = (await startServer(t)).client();
  const first = take(follow(client), 1);
  await append(client, "events", 0, 1);
  assert.deepEqual(appended(await first), [0]);
});

test("every commit comes once while the server is killed", async (t) => {
  const server = await startServer(t);
  const client = server.client();
  const all = take(follow(client), 300);
  for (let killed = 0; killed < 3; killed += 1) {
    await append(client, "events", killed * 75, killed * 75 + 75);
    await server.kill();
    await server.start();
  }
  await append(client, "events", 225, 300);
  const events = await all;
  assert.deepEqual(appended(events), numbers(300));
  assert.deepEqual(
    events.map((event) => event.revision),
    numbers(300).map((n) => n + 1),
  );
});

test("every commit comes once through a proxy that cuts", async (t) => {
  const server = await startServer(t);
  const proxy = await startCuttingProxy(t, server.port, 0.3);
  const client = server.client();
  const followed = createClient({ url: proxy.url });
  const all = take(follow(followed), 400);
  await append(client, "events", 0, 400);
  assert.deepEqual(appended(await all), numbers(400));
  assert.ok(proxy.cuts() > 5, `${proxy.cuts()} cuts`);
});

test("a frame that broke off is read again", async (t) => {
  const frame = (n: number) => `id: ${n}\nevent: appended\ndata: {"revision":${n},"at":"","changes":[]}\n\n`;
  const head = ["Blackboard-Revision: 0"];
  // Events of other kinds are passed over.
  const others = 'event: later\ndata: {"news":1}\n\nevent: later\ndata: null\n\n: a comment\n\n';
  const streams = [`id: 0\n\n${others}${frame(1)}${frame(2).slice(0, 30)}`, `id: 1\n\n${frame(1)}${frame(2)}`];
  const { url, heads } = await startForeign(t, (path, count) =>
    path === "/" ? greeting() : http("200 OK", "text/event-stream", streams[count - 2] ?? "", head),
  );
  const events = await take(createClient({ url }).events("events", { after: 0 }), 2);
  assert.deepEqual(
    events.map((event) => event.revision),
    [1, 2],
  );
  assert.deepEqual(heads.map((head) => head.split(" ")[1]).slice(1), [
    "/v1/sessions/events/events?after=0",
    "/v1/sessions/events/events?after=1",
  ]);
});

test("a silent connection is replaced", async (t) => {
  const client = (await startServer(t)).client();
  await append(client, "events", 0, 1);
  let streams = 0;
  let replaced = () => {};
  const isReplaced = new Promise<void>((resolve) => (replaced = resolve));
  const counted = client.withOptions({
    fetch: (input, init) => {
      if ((input as Request).url.includes("/events") && (streams += 1) === 3) replaced();
      return fetch(input, init);
    },
  });
  const events = take(follow(counted, { silenceMs: 500 }), 2);
  await isReplaced;
  await append(client, "events", 1, 2);
  assert.deepEqual(appended(await events), [0, 1]);
});

test("a gap is an error, or an event after which the others go on", async (t) => {
  const client = (await startServer(t)).client();
  await append(client, "events", 0, 3);
  await client.POST("/v1/sessions/{session}/purge", { params: { path: { session: "events" } } });
  // The purge is a commit too, which keeps the answer of its key.
  await assert.rejects(follow(client).next(), (error) => {
    assert(error instanceof HistoryGap);
    assert.deepEqual([error.revision, error.oldestRevision], [4, 3]);
    assert.match(
      error.message,
      /^the history after revision 0 is not retained, or does not exist yet: read the board again/,
    );
    return true;
  });
  const events = client.events("events", { after: 0, onGap: "resync" });
  const gap = await events.next();
  assert.deepEqual(gap.value, { type: "resync", kind: "resync", revision: 4, oldest_revision: 3 });
  await append(client, "events", 3, 4);
  const after = (await events.next()).value;
  assert(after.type === "commit");
  assert.deepEqual(appended([after]), [3]);
  await assert.rejects(follow(client, { after: 99 }).next(), HistoryGap);
  await assert.rejects(
    client.GET("/v1/sessions/{session}/diff", { params: { path: { session: "events" }, query: { from: "1" } } }),
    (error) => Problem.is(error, "history-compacted") && error.oldestRevision === 3,
  );
});

test("a frame without an end is refused", async (t) => {
  const endless = `data: ${"x".repeat(9 * 1024 * 1024)}`;
  const { url } = await startForeign(t, (path) =>
    path === "/" ? greeting() : http("200 OK", "text/event-stream", endless, ["Blackboard-Revision: 0"]),
  );
  await assert.rejects(createClient({ url }).events("events").next(), /a frame of the stream of events has no end/);
});

test("a signal ends the events with its reason", async (t) => {
  const server = await startServer(t);
  const client = server.client();
  const stop = new AbortController();
  const reason = new Error("enough");
  const next = follow(client, { signal: stop.signal }).next();
  stop.abort(reason);
  await assert.rejects(next, reason);
  await assert.rejects(follow(client, { signal: stop.signal }).next(), reason);

  const away = new AbortController();
  await append(client, "events", 0, 1);
  const events = follow(client, { signal: away.signal });
  await events.next();
  const waiting = events.next();
  await server.kill();
  away.abort(reason);
  await assert.rejects(waiting, reason);
});

test("a refusal after a break is thrown", async (t) => {
  const server = await startServer(t);
  const admin = server.token("admin", "--scopes", "admin");
  const reader = server.token("reader", "--scopes", "read");
  await append(server.client({ token: admin }), "events", 0, 1);
  const events = follow(server.client({ token: reader }));
  await events.next();
  const next = assert.rejects(events.next(), (error) => Problem.is(error, "unauthorized"));
  server.revoke("reader");
  await next;
});

test("events of a server that is not there fail at the limit", async () => {
  const client = createClient({ url: "http://127.0.0.1:2", timeoutMs: 200 });
  await assert.rejects(follow(client).next(), /gave no complete answer within 0\.2 s/);
});
