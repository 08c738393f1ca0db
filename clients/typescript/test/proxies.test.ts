/** Proxies in front of the server: cut waits, lost answers, changed tags, slashes of paths. */

import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import type { TestContext } from "node:test";

import { ConnectionFailed, createClient, Problem, TimeoutError, UnexpectedAnswer } from "agent-blackboard";
import type { Client } from "agent-blackboard";

import { greeting, http, startForeign, startProxy } from "./network.js";
import type { Habits } from "./network.js";
import { startServer } from "./server.js";

const ANSWER = "/v1/sessions/{session}/questions/{seq}/answer";
const REQUESTS = "/v1/sessions/{session}/requests";
const STATE = "/v1/sessions/{session}/state/{path}";
const session = "proxies";

/** Starts a server and a proxy; returns a client of each. */
async function behind(t: TestContext, habits: Habits, timeoutMs = 30_000) {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.port, habits);
  return { server, proxy, direct: server.client(), client: createClient({ url: proxy.url, agent: "w", timeoutMs }) };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
}

function unwanted(): never {
  assert.fail("there is nothing to work on");
}

async function post(client: Client): Promise<void> {
  await client.POST(REQUESTS, { params: { path: { session } }, body: {} });
}

for (const cut of [504, "close"] as const) {
  test(`waits go on over pieces that a proxy cuts: ${cut}`, async (t) => {
    const { direct, client, proxy } = await behind(t, { cut });
    await post(direct);
    const asked = client.ask(session, "Which printer?");
    const waits = [
      client.waitFor.done(session, 1).then(({ done }) => done?.result),
      client.waitFor.state(session, "a/b", { equals: 1 }),
      client.waitFor.entries(session, "trajectories").then(({ count }) => count),
    ];
    await until(() => proxy.cuts() >= 20);
    await direct.PUT(ANSWER, { params: { path: { session, seq: 1 } }, body: { answer: "floor 3" } });
    await direct.PUT(STATE, { params: { path: { session, path: "a/b" } }, body: 1 });
    await direct.POST("/v1/sessions/{session}/trajectories", { params: { path: { session } }, body: {} });
    await direct.withOptions({ agent: "w" }).claimNext(session, {}, () => 3);
    assert.equal((await asked).answer, "floor 3");
    assert.deepEqual(await Promise.all(waits), [3, 1, 1]);
  });
}

/** Two ways of a proxy to answer no wait. */
const UNANSWERED: [kind: string, habits: Habits, last: typeof UnexpectedAnswer | typeof ConnectionFailed][] = [
  ["504", { reject: ({ url }) => (url?.includes("wait=") ? 504 : undefined) }, UnexpectedAnswer],
  ["close", { lose: ({ url }) => url?.includes("wait=") === true }, ConnectionFailed],
];

for (const [kind, habits, last] of UNANSWERED) {
  test(`a wait that is never answered ends at its limit: ${kind}`, async (t) => {
    const { direct, client } = await behind(t, habits);
    await post(direct);
    const isOver = (current: unknown) => (error: unknown) => {
      assert(error instanceof TimeoutError && Problem.is(error, "condition-not-met"));
      assert(error.cause instanceof last, error.message);
      assert.deepEqual([error.name, error.current], ["TimeoutError", current]);
      assert.match(error.message, /^condition-not-met: the wait's time is over, and its last piece was not answered: /);
      return true;
    };
    const limits = { limitMs: 700 };
    const { data } = await direct.GET(`${REQUESTS}/{seq}`, { params: { path: { session, seq: 1 } } });
    await Promise.all([
      assert.rejects(client.waitFor.done(session, 1, limits), isOver(data)),
      assert.rejects(client.waitFor.state(session, "a", "exists", limits), isOver(undefined)),
      assert.rejects(client.waitFor.entries(session, "questions", limits), isOver(undefined)),
    ]);
  });
}

test("waits go on while a proxy has no server", async (t) => {
  let isAway = true;
  let rejected = 0;
  const reject = () => (isAway && (rejected += 1) % 2 === 0 ? 502 : isAway ? 503 : undefined);
  const { direct, client } = await behind(t, { reject });
  const value = client.waitFor.state(session, "a", "exists");
  const claimed = client.claimNext(session, { waitMs: 60_000 }, () => 1);
  await assert.rejects(client.waitFor.state(session, "a", "exists", { limitMs: 500 }), TimeoutError);
  await assert.rejects(client.waitFor.entries(session, "requests", { limitMs: 500 }), TimeoutError);
  isAway = false;
  await direct.PUT(STATE, { params: { path: { session, path: "a" } }, body: 1 });
  await post(direct);
  assert.equal(await value, 1);
  assert.equal((await claimed)?.outcome, "done");
});

test("a condition that can come true no more ends the wait", async (t) => {
  const problem = { code: "condition-not-met", detail: "it has failed", why: "no paper", current: { seq: 1 } };
  const { url, heads } = await startForeign(t, (path) =>
    path === "/" ? greeting() : http("412 Failed", "application/problem+json", JSON.stringify(problem)),
  );
  await assert.rejects(createClient({ url }).waitFor.answer(session, 1), (error) => {
    assert(Problem.is(error, "condition-not-met") && !(error instanceof TimeoutError));
    return error.body["why"] === "no paper";
  });
  assert.equal(heads.length, 2);
});

for (const cut of [504, "close"] as const) {
  test(`a claim whose answer was lost is the one returned: ${cut}`, async (t) => {
    let lost = 0;
    const lose: Habits["lose"] = ({ url }, status) =>
      url?.includes("requests/claim?") === true && status === 200 && (lost += 1) <= 2;
    const { direct, client, proxy } = await behind(t, { cut, lose });
    const claimed = client.claimNext(session, { waitMs: 60_000 }, ({ seq }) => seq);
    // There is no session yet.
    await until(() => proxy.cuts() >= 2);
    await direct.PUT(STATE, { params: { path: { session, path: "a" } }, body: 1 });
    const claims = () => proxy.seen.filter(({ url }) => url?.includes("requests/claim?"));
    const { length } = claims();
    await until(() => claims().length >= length + 3);
    await direct.POST(REQUESTS, { params: { path: { session } }, body: [{}, {}] });
    assert.deepEqual(await claimed, { seq: 1, outcome: "done", result: 1 });
    assert.equal(lost, 3);
    const { data } = await direct.GET(`${REQUESTS}/{seq}`, { params: { path: { session, seq: 2 } } });
    assert.equal(data.claim, undefined);
    const repeats = claims().slice(-3);
    const told = repeats.map(({ url, headers }) => `${headers["idempotency-key"]} ${url}`);
    assert.equal(new Set(told).size, 1);
  });
}

test("a claim whose pieces are cut ends when its time is over", async (t) => {
  const { direct, client } = await behind(t, { cut: 504 });
  await direct.PUT(STATE, { params: { path: { session, path: "a" } }, body: 1 });
  assert.equal(await client.claimNext(session, { waitMs: 700 }, unwanted), undefined);
});

test("a claim that cannot be settled is an error", async (t) => {
  const lose: Habits["lose"] = ({ url }) => url?.includes("requests/claim?") === true;
  const { direct, client } = await behind(t, { lose }, 3_000);
  await post(direct);
  await assert.rejects(client.claimNext(session, { waitMs: 500 }, unwanted), (error) => {
    return error instanceof ConnectionFailed && error.outcome === "unknown" && error.idempotencyKey !== undefined;
  });
});

/** Returns the habits of a proxy that changes tags, and passes `Blackboard-ETag` on or not. */
function changing(change: (etag: string) => string, isKept: boolean): Habits {
  return {
    change: ({ etag, "blackboard-etag": own = etag, ...headers }: IncomingHttpHeaders) => {
      if (etag === undefined || own === undefined) return headers;
      return { ...headers, etag: change(etag), ...(isKept ? { "blackboard-etag": own } : {}) };
    },
  };
}

const weak = (etag: string) => `W/${etag}`;
const suffixed = (etag: string) => etag.replace(/"$/, ';gzip"');

for (const [kind, habits] of [
  ["weak", changing(weak, true)],
  ["weak, and no other", changing(weak, false)],
  ["with a suffix", changing(suffixed, true)],
] as const) {
  test(`tags that a proxy changes still match: ${kind}`, async (t) => {
    const { direct, client } = await behind(t, habits);
    const params = { path: { session, path: "n" } };
    const calls: unknown[] = [];
    await client.updateState<number>(session, "n", (n = 0) => n + 1);
    const updated = await client.updateState<number>(session, "n", async (n = 0) => {
      // Another one comes first, once.
      if (calls.push(n) === 1) await direct.PUT(STATE, { params, body: 5 });
      return n + 1;
    });
    assert.deepEqual([updated.value, calls], [6, [1, 5]]);
    await post(direct);
    const waiting = client.waitFor.done(session, 1);
    await direct.withOptions({ agent: "w" }).claimNext(session, {}, () => 3);
    assert.equal((await waiting).done?.result, 3);
  });
}

test("an update whose tag never matches is an error", async (t) => {
  const { direct, client } = await behind(t, changing(suffixed, false));
  await direct.PUT(STATE, { params: { path: { session, path: "n" } }, body: 1 });
  let calls = 0;
  const update = client.updateState(session, "n", () => (calls += 1));
  await assert.rejects(update, (error) => Problem.is(error, "precondition-failed"));
  assert.equal(calls, 1);
});

test("the slashes of a state path arrive as slashes", async (t) => {
  const { client, proxy } = await behind(t, {});
  await client.updateState(session, ["tasks", "a/b", "ü ?%2F"], () => 1);
  await client.PUT(STATE, { params: { path: { session, path: "tasks/t1/c d" } }, body: 2 });
  assert.equal(await client.waitFor.state(session, "tasks/t1/c d", "exists"), 2);
  const paths = proxy.seen.map(({ url }) => url?.split("?")[0]).filter((path) => path?.includes("/state/"));
  assert.deepEqual(
    [...new Set(paths)],
    [`/v1/sessions/${session}/state/tasks/a~1b/%C3%BC%20%3F%252F`, `/v1/sessions/${session}/state/tasks/t1/c%20d`],
  );
  const whole = await client.GET("/v1/sessions/{session}/state", { params: { path: { session } } });
  assert.deepEqual(whole.data, { tasks: { "a/b": { "ü ?%2F": 1 }, t1: { "c d": 2 } } });
  for (const path of ["", "/a", "a/", "a//b", "a/./b", "a/../b"]) {
    const sent = client.PUT(STATE, { params: { path: { session, path } }, body: 1 });
    await assert.rejects(sent, { name: "UnsupportedValue" }, path);
  }
});
