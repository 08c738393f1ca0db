/** Waits: for answers, ends of requests, values of the state, and entries. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";

import { Problem, RequestCancelled, RequestFailed, TimeoutError } from "agent-blackboard";
import type { Client } from "agent-blackboard";

import { append, startServer } from "./server.js";

const ANSWER = "/v1/sessions/{session}/questions/{seq}/answer";
const STATE = "/v1/sessions/{session}/state/{path}";
const session = "waits";

/** Returns a client, and a promise of the first poll that it sends. */
async function watched(
  t: TestContext,
  polls: RegExp,
): Promise<{ client: Client; waits: Client; isWaiting: Promise<void> }> {
  const client = (await startServer(t)).client();
  let sent = () => {};
  const isWaiting = new Promise<void>((resolve) => (sent = resolve));
  const waits = client.withOptions({
    fetch: (input, init) => {
      if (polls.test((input as Request).url)) sent();
      return fetch(input, init);
    },
  });
  return { client, waits, isWaiting };
}

function isNotMet(error: unknown): error is TimeoutError {
  return error instanceof TimeoutError && Problem.is(error, "condition-not-met") && error.cause === undefined;
}

test("a question is asked and answered", async (t) => {
  const { client, waits, isWaiting } = await watched(t, /until=answered/);
  const asked = waits.ask(session, "Which printer?");
  await isWaiting;
  const { data } = await client.GET("/v1/questions");
  assert.deepEqual(
    data.questions.map(({ item }) => item),
    [{ question: "Which printer?" }],
  );
  await client.PUT(ANSWER, { params: { path: { session, seq: 1 } }, body: { answer: "floor 3" } });
  const { seq, answer, skipped, expired, entry } = await asked;
  assert.deepEqual({ seq, answer, skipped, expired }, { seq: 1, answer: "floor 3", skipped: false, expired: false });
  assert.deepEqual(entry.item, { question: "Which printer?", answer: "floor 3" });
});

test("a question is skipped, or expires with a default", async (t) => {
  const { client, waits, isWaiting } = await watched(t, /until=answered/);
  const asked = waits.ask(session, { question: "Which?", choices: ["a", "b"] });
  await isWaiting;
  await client.PUT(ANSWER, { params: { path: { session, seq: 1 } }, body: { skip: true } });
  assert.deepEqual(await asked.then(({ answer, skipped }) => [answer, skipped]), [null, true]);
  const expired = await client.ask(session, "And which paper?", { expiresMs: 50, default: "A4" });
  assert.deepEqual([expired.answer, expired.expired], ["A4", true]);
});

test("a wait beyond its limit tells what there is", async (t) => {
  const client = (await startServer(t)).client();
  await assert.rejects(client.ask(session, "Which?", { limitMs: 50 }), (error) => {
    assert(isNotMet(error));
    assert.equal((error.current as { seq: number }).seq, 1);
    return true;
  });
  await client.PUT(STATE, { params: { path: { session, path: "a" } }, body: 1 });
  for (const until of ["absent", { equals: 2 }] as const) {
    await assert.rejects(client.waitFor.state(session, "a", until, { limitMs: 50 }), (error) => {
      return isNotMet(error) && error.current === 1;
    });
  }
  await client.POST("/v1/sessions/{session}/requests", { params: { path: { session } }, body: {} });
  await assert.rejects(client.waitFor.done(session, 1, { limitMs: 50 }), (error) => {
    return isNotMet(error) && (error.current as { seq: number }).seq === 1;
  });
  const page = await client.waitFor.entries(session, "trajectories", { limitMs: 50 });
  assert.deepEqual(page.entries, []);
  await assert.rejects(client.waitFor.answer(session, 9), (error) => Problem.is(error, "entry-not-found"));
});

test("a request is waited for until it is done", async (t) => {
  const { client, waits, isWaiting } = await watched(t, /until=ended/);
  await client.POST("/v1/sessions/{session}/requests", { params: { path: { session } }, body: {} });
  const done = waits.waitFor.done(session, 1);
  await isWaiting;
  await client.withOptions({ agent: "w" }).claimNext(session, {}, () => ({ pages: 3 }));
  assert.deepEqual((await done).done?.result, { pages: 3 });
  assert.equal((await client.waitFor.done(session, 1)).seq, 1);
});

test("a request that failed ends the wait", async (t) => {
  const client = (await startServer(t)).client({ agent: "w" });
  const params = { path: { session }, query: { attempts: 1 } };
  await client.POST("/v1/sessions/{session}/requests", { params, body: {} });
  const done = assert.rejects(client.waitFor.done(session, 1), (error) => {
    assert(error instanceof RequestFailed);
    assert.match(error.message, /request 1 has failed: "Error: no paper"/);
    assert.equal(error.entry.failed?.agent, "w");
    return true;
  });
  await client.claimNext(session, {}, () => {
    throw new Error("no paper");
  });
  await done;

  await client.POST("/v1/sessions/{session}/requests", { params, body: {} });
  const claim = { params: { path: { session, seq: 2 } }, body: { ttl: "10ms" } };
  await client.PUT("/v1/sessions/{session}/requests/{seq}/claim", claim);
  await assert.rejects(client.waitFor.done(session, 2), /request 2 has failed: no reason given/);
});

test("a request that was cancelled ends the wait", async (t) => {
  const { client, waits, isWaiting } = await watched(t, /until=ended/);
  const { requests } = client.session(session);
  const seq = await requests.submit({});
  const done = assert.rejects(waits.waitFor.done(session, seq), (error) => {
    return error instanceof RequestCancelled && error.message === "request 1 was cancelled: no reason given";
  });
  await isWaiting;
  const [ended, cancelled] = [client.waitFor.ended(session, seq), client.waitFor.cancelled(session, seq)];
  await requests.cancel(seq);
  await done;
  assert.deepEqual(await ended, await cancelled);
});

test("a value of the state is waited for", async (t) => {
  const { client, waits, isWaiting } = await watched(t, /until=equals/);
  const params = { path: { session, path: "tasks/t1" } };
  // There is no session yet.
  const equal = waits.waitFor.state(session, "tasks/t1", { equals: { status: "ready" } });
  await isWaiting;
  await client.PUT(STATE, { params, body: { status: "new" } });
  await client.PUT(STATE, { params, body: { status: "ready" } });
  assert.deepEqual(await equal, { status: "ready" });
  assert.deepEqual(await client.waitFor.state(session, ["tasks", "t1"], "exists"), { status: "ready" });
  assert.deepEqual(await client.waitFor.state(session, "", "exists"), { tasks: { t1: { status: "ready" } } });
  const absent = client.waitFor.state(session, "tasks/t1", "absent");
  await client.DELETE(STATE, { params });
  assert.equal(await absent, undefined);
});

test("entries are waited for, also in a session and a memory to come", async (t) => {
  const { client, waits, isWaiting } = await watched(t, /until=exists/);
  const first = waits.waitFor.entries(session, "trajectories");
  const noted = waits.waitFor.entries(session, { memory: "AppAgent" });
  await isWaiting;
  await append(client, session, 0, 1);
  const page = await first;
  assert.deepEqual(
    page.entries.map(({ item }) => item),
    [{ n: 0 }],
  );
  const params = { path: { session, agent: "AppAgent" } };
  await client.POST("/v1/sessions/{session}/agents/{agent}/memory", { params, body: { noted: true } });
  assert.deepEqual(
    (await noted).entries.map(({ item }) => item),
    [{ noted: true }],
  );

  // The first entry does not pass the filter.
  const filtered = client.waitFor.entries(session, "trajectories", { after: page.next, query: { status: "FAIL" } });
  await append(client, session, 1, 2);
  await client.POST("/v1/sessions/{session}/trajectories", { params: { path: { session } }, body: { status: "FAIL" } });
  assert.deepEqual(
    (await filtered).entries.map(({ seq }) => seq),
    [3],
  );
});

for (const signal of ["SIGKILL", "SIGTERM"] as const) {
  test(`a wait goes on after the server had a ${signal}`, async (t) => {
    const server = await startServer(t);
    const client = server.client();
    await append(client, session, 0, 1);
    const next = client.waitFor.entries(session, "trajectories", { after: 1 });
    const asked = client.ask(session, "Still there?");
    await client.waitFor.entries(session, "questions");
    // One that stops answers its waits before their time.
    await server.kill(signal);
    await server.start();
    await append(client, session, 1, 2);
    await client.PUT(ANSWER, { params: { path: { session, seq: 1 } }, body: { answer: "yes" } });
    assert.equal((await next).entries[0]?.seq, 2);
    assert.equal((await asked).answer, "yes");
  });
}

test("a long wait is several pieces of at most 25 s", async (t) => {
  const client = (await startServer(t)).client();
  const waits: number[] = [];
  let repeated = () => {};
  const isRepeated = new Promise<void>((resolve) => (repeated = resolve));
  // Each poll's time is over at once.
  const hurried = client.withOptions({
    fetch: (input, init) => {
      const request = input as Request;
      const [, wait] = /wait=(\d+)ms/.exec(request.url) ?? [];
      if (wait === undefined) return fetch(request, init);
      if (waits.push(Number(wait)) === 4) repeated();
      return fetch(new Request(request.url.replace(/wait=\d+ms/, "wait=1ms"), request), init);
    },
  });
  const asked = hurried.ask(session, "Which printer?");
  await isRepeated;
  await client.PUT(ANSWER, { params: { path: { session, seq: 1 } }, body: { answer: "floor 3" } });
  assert.equal((await asked).answer, "floor 3");
  assert(
    waits.every((wait) => wait <= 25_000),
    String(waits),
  );
});

test("a signal ends a wait with its reason", async (t) => {
  const { client, waits, isWaiting } = await watched(t, /until=answered/);
  const stop = new AbortController();
  const reason = new Error("enough");
  const asked = assert.rejects(waits.ask(session, "Which?", { signal: stop.signal }), reason);
  await isWaiting;
  stop.abort(reason);
  await asked;
  const { data } = await client.GET("/v1/questions");
  assert.equal(data.questions.length, 1);
});
