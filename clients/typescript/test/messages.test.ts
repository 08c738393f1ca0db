/** Messages between agents, and the attention that waits for all that concerns one. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";

import { Problem, TimeoutError } from "agent-blackboard";
import type { Attention, Client } from "agent-blackboard";

import { startCuttingProxy, startProxy } from "./network.js";
import type { Habits } from "./network.js";
import { numbers, startServer } from "./server.js";

const MESSAGE = "/v1/sessions/{session}/agents/{agent}/messages/{seq}";
const STATE = "/v1/sessions/{session}/state/{path}";
const session = "messages";

/** Starts a server and a proxy; returns a client of each, and the reads of an attention that the proxy saw. */
async function behind(t: TestContext, habits: Habits = {}) {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.port, habits);
  const asked = () => proxy.seen.filter(({ url }) => url?.includes("/attention")).length;
  const client = server.client({ agent: "B" });
  return { server, proxy, asked, direct: server.client({ agent: "A" }), client, far: proxied(client, proxy.url) };
}

/** Returns a client whose requests go to another address. */
function proxied(client: Client, url: string): Client {
  return client.withOptions({
    fetch: (input, init) => {
      const request = input as Request;
      return fetch(new Request(request.url.replace(client.url, url), request), init);
    },
  });
}

function texts({ messages }: Attention): unknown[] {
  return (messages?.newest ?? []).map(({ item }) => item["text"]);
}

/** Returns the next result of a follower. */
async function next(follower: AsyncGenerator<Attention, never>): Promise<Attention> {
  return (await follower.next()).value;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
}

async function unackedOf(client: Client, agent: string): Promise<number[]> {
  const seqs: number[] = [];
  for await (const { seq } of client.session(session).messages(agent).unacked()) seqs.push(seq);
  return seqs;
}

test("a message is sent, read and acknowledged once", async (t) => {
  const server = await startServer(t);
  const [a, b] = [server.client({ agent: "A" }), server.client({ agent: "B ü" })];
  assert.deepEqual(await unackedOf(a, "B ü"), []);
  const { send } = a.session(session).messages("B ü");
  assert.deepEqual(
    [await send("hello", { thread: "t1" }), await send({ text: "again", n: 1 }, { replyTo: 1 })],
    [1, 2],
  );
  const messages = b.session(session).messages("B ü");
  const items: unknown[] = [];
  for await (const { item, agent } of messages.unacked()) items.push([agent, item]);
  assert.deepEqual(items, [
    ["A", { text: "hello", thread: "t1" }],
    ["A", { text: "again", n: 1, reply_to: 1 }],
  ]);
  const ackedAt = async () => {
    await messages.ack(1);
    const { data } = await b.GET(MESSAGE, { params: { path: { session, agent: "B ü", seq: 1 } } });
    return data.acked_at;
  };
  assert.equal(await ackedAt(), (await ackedAt()) ?? "none");
  assert.deepEqual(await unackedOf(b, "B ü"), [2]);
  await assert.rejects(messages.ack(9), (error) => Problem.is(error, "entry-not-found"));
});

test("unacknowledged messages are read page by page", async (t) => {
  const client = (await startServer(t)).client({ agent: "B" });
  const body = numbers(450).map((n) => `message ${n}`);
  await client.POST("/v1/sessions/{session}/agents/{agent}/messages", {
    params: { path: { session, agent: "B" } },
    body,
  });
  const messages = client.session(session).messages("B");
  for await (const { seq } of messages.unacked({ after: 225 })) {
    if (seq > 230) break;
    await messages.ack(seq);
  }
  const expected = numbers(450).flatMap((n) => (n >= 225 && n < 230 ? [] : [n + 1]));
  assert.deepEqual(await unackedOf(client, "B"), expected);
});

test("a wait for attention ends by a message", async (t) => {
  const { direct, far, proxy } = await behind(t);
  const { requests, messages } = direct.session(session);
  // There is no session yet, and what follows does not concern the agent.
  const waiting = far.waitFor.attention(session, "B", { match: { device: "linux" } });
  const sent = far.waitFor.entries(session, { messages: "B" });
  await until(() => proxy.seen.some(({ url }) => url?.includes("until=exists")));
  await requests.submit({ device: "mac" });
  await messages("C").send("not for B");
  await messages("B").send("hello");
  const found = await waiting;
  assert.deepEqual([texts(found), found.claimable, found.paused], [["hello"], { count: 0, newest: [] }, false]);
  assert.equal((await sent).entries[0]?.item["text"], "hello");
  const limits = { after: 3, limitMs: 50 };
  const empty = await far.waitFor.attention(session, "C", { include: ["answers", "claimable"], ...limits });
  assert.deepEqual(empty, {
    claimable: { count: 0, newest: [] },
    answers: { count: 0, newest: [] },
    paused: false,
    next: 3,
  });
  await assert.rejects(far.waitFor.attention("another", "B", limits), TimeoutError);
});

for (const cut of [504, "close"] as const) {
  test(`attention goes on over pieces that a proxy cuts: ${cut}`, async (t) => {
    const { direct, far, proxy } = await behind(t, { cut });
    const { send } = direct.session(session).messages("B");
    const waiting = far.waitFor.attention(session, "B");
    await until(() => proxy.cuts() >= 2);
    await send("one");
    assert.deepEqual(texts(await waiting), ["one"]);
    const follower = far.session(session).followAttention("B");
    assert.deepEqual(texts(await next(follower)), ["one"]);
    const coming = next(follower);
    const cuts = proxy.cuts();
    await until(() => proxy.cuts() >= cuts + 2);
    await send("two");
    assert.deepEqual(texts(await coming), ["one", "two"]);
  });
}

test("a follower is held while messages stay", async (t) => {
  const { direct, far, asked } = await behind(t);
  const { messages } = direct.session(session);
  const follower = far.session(session).followAttention("B");
  await messages("B").send("one");
  await messages("B").send("two");
  assert.deepEqual(texts(await next(follower)), ["one", "two"]);
  const coming = next(follower);
  await until(() => asked() >= 3);
  for (const body of numbers(30)) {
    await direct.PUT(STATE, { params: { path: { session, path: "n" } }, body });
    await messages("C").send("not for B");
  }
  const held = asked();
  // What goes away is no result.
  await messages("B").ack(1);
  await until(() => asked() >= 4);
  await messages("B").send("three");
  assert.deepEqual(texts(await coming), ["two", "three"]);
  assert.deepEqual([held, asked()], [3, 4]);
});

test("a follower goes on over pieces that end", async (t) => {
  const { direct, client, far, proxy } = await behind(t);
  const { send } = direct.session(session).messages("B");
  const waits: number[] = [];
  // Each poll's time is over at once.
  const hurried = far.withOptions({
    fetch: (input, init) => {
      const request = input as Request;
      waits.push(...[...request.url.matchAll(/wait=(\d+)ms/g)].map(([, ms]) => Number(ms)));
      const url = request.url.replace(/wait=\d+ms/, "wait=1ms").replace(client.url, proxy.url);
      return fetch(new Request(url, request), init);
    },
  });
  const follower = hurried.session(session).followAttention("B");
  for (const sent of [["one"], ["one", "two"]]) {
    const coming = next(follower);
    const { length } = waits;
    await until(() => waits.length >= length + 2);
    await send(sent.at(-1) ?? "");
    assert.deepEqual(texts(await coming), sent);
  }
  assert(waits.every((wait) => wait <= 25_000));
});

test("a follower gives answers and requests once", async (t) => {
  const { direct, client } = await behind(t);
  const { requests, messages } = direct.session(session);
  const follower = client.session(session).followAttention("B", { match: { device: "linux" } });
  const seqs = (list: Attention["answers"]) => list?.newest.map(({ seq }) => seq);
  await requests.submit({ device: "linux" });
  await requests.submit({ device: "mac" });
  assert.deepEqual(seqs((await next(follower)).claimable), [1]);
  const asked = client.ask(session, "Which one?");
  const { entries } = await direct.waitFor.entries(session, "questions");
  const seq = entries[0]?.seq ?? 0;
  const answer = "/v1/sessions/{session}/questions/{seq}/answer";
  await direct.PUT(answer, { params: { path: { session, seq } }, body: { answer: "The third" } });
  assert.equal((await asked).answer, "The third");
  let found = await next(follower);
  assert.deepEqual([seqs(found.answers), seqs(found.claimable)], [[seq], []]);
  await client.claimNext(session, { match: { device: "linux" } }, async (task) => {
    await requests.cancel(task.seq);
    found = await next(follower);
    assert.deepEqual([seqs(found.cancels), seqs(found.answers)], [[1], []]);
    await messages("B").send("hello");
    found = await next(follower);
    assert.deepEqual([texts(found), seqs(found.cancels)], [["hello"], [1]]);
  });
  await client.PUT(STATE, { params: { path: { session, path: "agents/B/paused" } }, body: true });
  assert.equal((await next(follower)).paused, true);
  // The first look at what waits says so too, though nothing does.
  const reviews = client.session(session).followAttention("B", { after: found.next, include: ["reviews"] });
  assert.equal((await next(reviews)).paused, true);
  const judged = await requests.submit({ device: "tv" }, { review: true });
  for (const accept of [false, true]) {
    await finish(direct, judged);
    const [review] = (await next(reviews)).reviews?.newest ?? [];
    assert.equal(review?.seq, judged);
    await client.session(session).requests.verdict(judged, { accept, fence: review?.in_review?.fence });
  }
});

/** Claims a request, and is done with it. */
async function finish(client: Client, seq: number): Promise<void> {
  const params = { path: { session, seq } };
  const { data } = await client.PUT("/v1/sessions/{session}/requests/{seq}/claim", { params, body: {} });
  await client.PUT("/v1/sessions/{session}/requests/{seq}/done", { params, body: { fence: data.claim.fence } });
}

const suffixed = (tag: string | string[] | undefined) => String(tag).replace(/"$/, ';gzip"');

for (const [kind, change] of [
  ["removed", ({ etag, "blackboard-etag": own, ...headers }) => headers],
  ["changed", (headers) => ({ ...headers, etag: suffixed(headers.etag), "blackboard-etag": suffixed(headers.etag) })],
] as [string, NonNullable<Habits["change"]>][]) {
  test(`a follower goes on behind a proxy that spoils tags: ${kind}`, async (t) => {
    const { direct, far, asked } = await behind(t, { change });
    const { send } = direct.session(session).messages("B");
    await send("one");
    const follower = far.session(session).followAttention("B");
    assert.deepEqual(texts(await next(follower)), ["one"]);
    const coming = next(follower);
    await until(() => asked() >= 4);
    await send("two");
    assert.deepEqual(texts(await coming), ["one", "two"]);
  });
}

test("a signal ends a follower with its reason", async (t) => {
  const { direct, far, asked } = await behind(t);
  await direct.session(session).messages("B").send("one");
  const stop = new AbortController();
  const reason = new Error("enough");
  const follower = far.session(session).followAttention("B", { signal: stop.signal });
  await next(follower);
  const ended = assert.rejects(next(follower), reason);
  await until(() => asked() >= 3);
  stop.abort(reason);
  await ended;
});

test("each message is sent once over cut connections", async (t) => {
  const server = await startServer(t);
  const direct = server.client({ agent: "B" });
  const { url, cuts } = await startCuttingProxy(t, server.port, 0.2);
  const messages = proxied(server.client({ agent: "B", timeoutMs: 120_000 }), url)
    .session(session)
    .messages("B");
  for (const n of numbers(60)) {
    const seq = await messages.send(`message ${n}`);
    if (n % 3 === 0) await messages.ack(seq);
  }
  assert(cuts() > 10, `${cuts()}`);
  const { entries } = await direct.waitFor.entries(session, { messages: "B" }, { query: { limit: 1_000 } });
  assert.deepEqual(
    entries.map(({ item }) => item["text"]),
    numbers(60).map((n) => `message ${n}`),
  );
  assert.deepEqual(
    await unackedOf(direct, "B"),
    numbers(60).flatMap((n) => (n % 3 === 0 ? [] : [n + 1])),
  );
});

test("a follower goes on after a kill and a stop", async (t) => {
  const { server, direct, client } = await behind(t);
  const { send } = direct.session(session).messages("B");
  await send("one");
  const follower = client.session(session).followAttention("B");
  assert.deepEqual(texts(await next(follower)), ["one"]);
  const coming = next(follower);
  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    await server.kill(signal);
    await server.start();
  }
  await send("two");
  assert.deepEqual(texts(await coming), ["one", "two"]);
});

test("messages are their agent's own", async (t) => {
  const server = await startServer(t);
  const [a, b] = ["A", "B"].map((name) => {
    const token = server.token(name, "--scopes", "read,write", "--agent", name, "--anyway");
    return server.client({ token });
  }) as [Client, Client];
  const isForbidden = (error: unknown) => Problem.is(error, "forbidden") && error.status === 403;
  assert.equal(await a.session(session).messages("B").send("from A"), 1);
  await assert.rejects(unackedOf(a, "B"), isForbidden);
  await assert.rejects(a.session(session).messages("B").ack(1), isForbidden);
  await assert.rejects(a.waitFor.attention(session, "B"), isForbidden);
  await assert.rejects(a.waitFor.entries(session, { messages: "B" }), isForbidden);
  await assert.rejects(next(a.session(session).followAttention("B")), isForbidden);
  const found = await b.waitFor.attention(session, "B");
  assert.deepEqual([found.messages?.newest[0]?.agent, texts(found)], ["A", ["from A"]]);
  await b.session(session).messages("B").ack(1);
  await b.session(session).messages("A").send("from B", { replyTo: 1 });
  assert.deepEqual(await unackedOf(a, "A"), [1]);
  assert.deepEqual(await unackedOf(b, "B"), []);
});
