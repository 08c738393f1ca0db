/** Workers: tasks that fail, are cancelled, lost or reviewed, and workers that stop or are killed. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import type { TestContext } from "node:test";

import { Problem, RequestCancelled, RequestFailed } from "agent-blackboard";
import type { Client, Task, Work, WorkOptions } from "agent-blackboard";

import { aborted, numbers, signalled, startServer, steps } from "./server.js";

const REQUEST = "/v1/sessions/{session}/requests/{seq}";
const session = "work";

/** A board with a planner, and the lines of its workers' logs. */
async function start(t: TestContext) {
  const server = await startServer(t);
  const client = server.client({ agent: "planner" });
  const { requests } = client.session(session);
  const lines: string[] = [];
  /** Runs a worker until it is stopped. */
  const hire = (agent: string, fn: Work<unknown>, options: WorkOptions = {}) => {
    const stop = new AbortController();
    const log = (line: string, error: unknown) => lines.push(`${line}: ${String(error)}`);
    const worker = client.withOptions({ agent }).session(session).requests;
    const ended = worker.work(fn, { log, signal: stop.signal, ...options });
    return async () => {
      stop.abort();
      await ended;
    };
  };
  const entry = async (seq: number) => (await client.GET(REQUEST, { params: { path: { session, seq } } })).data;
  return { server, client, requests, lines, hire, entry };
}

/** Steals a claim for another agent. */
async function steal(client: Client, seq: number): Promise<void> {
  const params = { path: { session, seq } };
  await client.withOptions({ agent: "w" }).DELETE(`${REQUEST}/claim`, { params });
  await client.withOptions({ agent: "thief" }).PUT(`${REQUEST}/claim`, { params, body: { ttl: "10m" } });
}

test("a task that fails leaves room to the good ones", async (t) => {
  const { client, requests, lines, hire, entry } = await start(t);
  const bad = await requests.submit({ n: -1 }, { attempts: 2, priority: 100 });
  const good = await Promise.all(numbers(20).map((n) => requests.submit({ n })));
  const seen: number[] = [];
  const stop = hire("w", ({ seq, item }) => {
    seen.push(seq);
    if (item["n"] === -1) throw new Error("no paper");
    return item["n"];
  });
  await assert.rejects(client.waitFor.done(session, bad), (error) => {
    return error instanceof RequestFailed && error.entry.failed?.reason === "Error: no paper";
  });
  await Promise.all(good.map((seq) => client.waitFor.done(session, seq)));
  await stop();
  assert.deepEqual([seen[0], seen.filter((seq) => seq === bad).length, seen.length], [bad, 2, 22]);
  const { past_attempts = [] } = await entry(bad);
  const [first, second] = past_attempts;
  assert(first && second && past_attempts.every(({ outcome, agent }) => outcome === "failed" && agent === "w"));
  // The request was not offered again before its pause was over.
  assert(Date.parse(second.from) - Date.parse(first.to) >= 1_000);
  assert.deepEqual(lines, Array(2).fill(`request ${bad}: attempt failed: Error: no paper`));
});

test("the pause doubles with each attempt, up to five minutes", async (t) => {
  const { client, requests, entry } = await start(t);
  const pauses: string[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = input as Request;
    if (!request.url.endsWith("/failed")) return globalThis.fetch(request, init);
    const body = (await request.clone().json()) as { retry_in: string };
    pauses.push(body.retry_in);
    // The test does not wait for the next attempt.
    return globalThis.fetch(new Request(request, { body: JSON.stringify({ ...body, retry_in: "1ms" }) }), init);
  };
  const seq = await requests.submit({}, { attempts: 11 });
  const worker = client.withOptions({ agent: "w", fetch }).session(session).requests;
  const stop = new AbortController();
  const work = worker.work(() => Promise.reject("broken"), { signal: stop.signal, log: () => {} });
  assert.equal((await client.waitFor.ended(session, seq)).failed?.reason, "broken");
  stop.abort();
  await work;
  const seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300];
  assert.deepEqual(
    pauses,
    seconds.map((s) => `${s * 1_000}ms`),
  );
  assert.equal((await entry(seq)).past_attempts?.length, 10);
});

test("the next worker reads why the attempts before it failed", async (t) => {
  const { client, requests, hire } = await start(t);
  const seq = await requests.submit({});
  const stopFirst = hire("first", (task) => task.fail({ code: 7 }, { retryInMs: 10 }));
  while ((await client.GET(REQUEST, { params: { path: { session, seq } } })).data.past_attempts === undefined);
  await stopFirst();
  const attempts = signalled();
  let past: Task["pastAttempts"] = [];
  const stop = hire("second", ({ pastAttempts }) => {
    past = pastAttempts;
    attempts.resolve();
  });
  await attempts.promise;
  await stop();
  const [attempt] = past;
  assert.deepEqual([attempt?.agent, attempt?.outcome, attempt?.reason], ["first", "failed", { code: 7 }]);
});

test("a cancelled task ends cancelled, or is done all the same", async (t) => {
  const { client, requests, lines, hire, entry } = await start(t);
  const stop = hire("w", async (task) => {
    assert.equal(task.cancelled, false);
    await requests.cancel(task.seq, "not needed");
    await aborted(task.signal);
    assert(task.cancelled && task.signal.reason instanceof RequestCancelled);
    if (task.item["stops"]) task.signal.throwIfAborted();
    return "all the same";
  });
  const stopped = await requests.submit({ stops: true });
  await assert.rejects(client.waitFor.done(session, stopped), (error) => {
    assert(error instanceof RequestCancelled);
    return error.message === 'request 1 was cancelled: "not needed"' && error.entry.cancelled?.agent === "planner";
  });
  const kept = await requests.submit({ stops: false });
  assert.equal((await client.waitFor.done(session, kept)).done?.result, "all the same");
  await stop();
  assert.equal((await entry(stopped)).past_attempts?.[0]?.outcome, "failed");
  assert.deepEqual(lines, ['request 1: attempt cancelled: RequestCancelled: request 1 was cancelled: "not needed"']);
  // A second cancellation ends it at once, and the claim is lost.
  const twice = hire("w", async (task) => {
    await requests.cancel(task.seq);
    await requests.cancel(task.seq);
    await aborted(task.signal);
    const params = { path: { session }, query: task.guard };
    const write = client.POST("/v1/sessions/{session}/trajectories", { params, body: {} });
    await assert.rejects(write, (error) => Problem.is(error, "stale-fence"));
    return "too late";
  });
  const ended = await client.waitFor.cancelled(session, await requests.submit({}));
  await twice();
  assert.equal(ended.cancelled?.reason, undefined);
});

test("a worker goes on after it lost a claim", async (t) => {
  const { client, requests, lines, hire, entry } = await start(t);
  const lost = await requests.submit({});
  // The loss is seen long before the claim is renewed.
  const stop = hire(
    "w",
    async (task) => {
      if (task.seq !== lost) return "kept";
      await steal(client, lost);
      await aborted(task.signal);
      assert(Problem.is(task.signal.reason, "stale-fence") && !task.cancelled);
      return "too late";
    },
    { ttlMs: 3_600_000 },
  );
  const next = await requests.submit({});
  assert.equal((await client.waitFor.done(session, next)).done?.result, "kept");
  await stop();
  assert.equal((await entry(lost)).claim?.agent, "thief");
  assert.match(lines.join(), /^request 1: attempt lost: Problem: stale-fence/);
});

test("a worker that is stopped finishes or gives back its task", async (t) => {
  const { client, requests, lines, hire, entry } = await start(t);
  for (const returns of [true, false]) {
    const seq = await requests.submit({});
    const begun = signalled();
    const stop = hire("w", async (task) => {
      begun.resolve();
      await aborted(task.signal);
      assert.equal(task.cancelled, false);
      if (!returns) task.signal.throwIfAborted();
      return "the last one";
    });
    await begun.promise;
    await stop();
    const left = await entry(seq);
    assert.deepEqual([left.claim, left.done?.result], [undefined, returns ? "the last one" : undefined]);
    assert.equal(left.past_attempts?.[0]?.outcome, returns ? undefined : "released");
  }
  assert.deepEqual(lines, []);
  // One that waits ends too, and one that has a limit ends by itself.
  await requests.cancel(2);
  await hire("w", () => assert.fail("there is nothing to do"))();
  await client
    .withOptions({ agent: "w" })
    .session(session)
    .requests.work(() => 1, { waitMs: 0 });
});

test("a claim that is won as the worker stops is given back", async (t) => {
  const { client, requests, entry } = await start(t);
  const seq = await requests.submit({}, { attempts: 1 });
  const stop = new AbortController();
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await globalThis.fetch(input, init);
    const isFirst = (input as Request).url.includes("/requests/claim?") && !stop.signal.aborted;
    if (!isFirst) return response;
    assert.equal(response.status, 200);
    stop.abort();
    throw stop.signal.reason;
  };
  const worker = client.withOptions({ agent: "w", fetch }).session(session).requests;
  await worker.work(() => assert.fail("it is stopped"), { signal: stop.signal });
  const { claim, failures, past_attempts: past } = await entry(seq);
  assert.deepEqual([claim, failures, past?.length, past?.[0]?.outcome], [undefined, 0, 1, "released"]);
});

test("a task is ended once, by its work or after it", async (t) => {
  const { client, requests, lines, entry } = await start(t);
  const worker = client.withOptions({ agent: "w" }).session(session).requests;
  const log = (line: string) => lines.push(line);
  const ends: Record<string, (task: Task) => Promise<unknown>> = {
    finished: async (task) => {
      await assert.rejects(task.finish(1n), { name: "UnsupportedValue" });
      await task.finish("early");
      await task.fail("no effect");
      throw new Error("no effect");
    },
    failed: async (task) => {
      await Promise.all([task.fail("by itself"), task.finish("no effect"), task.release()]);
    },
    released: async (task) => {
      await Promise.all([task.release(), task.release()]);
      return "no effect";
    },
  };
  for (const [end, fn] of Object.entries(ends)) {
    const seq = await requests.submit({ end }, { attempts: 1 });
    const done = signalled();
    const stop = new AbortController();
    const working = worker.work((task) => fn(task).finally(done.resolve), {
      match: { end },
      log,
      signal: stop.signal,
    });
    await done.promise;
    stop.abort();
    await working;
    const { done: finished, failed, past_attempts: past = [] } = await entry(seq);
    assert.deepEqual(
      [finished?.result, failed?.reason, past[0]?.outcome],
      {
        finished: ["early", undefined, undefined],
        failed: [undefined, "by itself", "failed"],
        released: [undefined, undefined, "released"],
      }[end],
    );
  }
});

test("a result in review is accepted or rejected by another", async (t) => {
  const { client, requests, hire } = await start(t);
  const seq = await requests.submit("a page", { review: true });
  const after = await requests.submit("print it", { after: [seq] });
  let drafts = 0;
  const stop = hire("w", (task) => (task.seq === seq ? `draft ${(drafts += 1)}` : "printed"));
  for (const accept of [false, true]) {
    const query = { in_review: true };
    let fence: number | undefined;
    while (fence === undefined) {
      const { data } = await client.GET("/v1/sessions/{session}/requests", { params: { path: { session }, query } });
      fence = data.entries[0]?.in_review?.fence;
    }
    await requests.verdict(seq, { accept, fence, reason: accept ? "good" : "too short" });
  }
  assert.equal((await client.waitFor.done(session, after)).done?.result, "printed");
  const done = await client.waitFor.done(session, seq);
  await stop();
  assert.deepEqual([done.done?.result, done.done?.verdict?.reason], ["draft 2", "good"]);
  assert.deepEqual(
    done.past_attempts?.map(({ outcome, reason }) => [outcome, reason]),
    [["refused", "too short"]],
  );
});

test("terms of a request are kept, and a retry sets a deadline", async (t) => {
  const { client, requests, entry } = await start(t);
  const notBefore = new Date("2100-01-01T00:00:00Z");
  const terms = { attempts: 3, priority: -7, notBefore, deadline: new Date("2100-01-02T00:00:00Z"), review: true };
  const seq = await requests.submit({}, terms);
  const shown = await entry(seq);
  assert.deepEqual(
    [shown.attempts, shown.priority, shown.not_before, shown.deadline, shown.review],
    [3, -7, "2100-01-01T00:00:00.000Z", "2100-01-02T00:00:00.000Z", true],
  );
  await requests.cancel(seq, { why: "changed plans" });
  assert.deepEqual((await client.waitFor.ended(session, seq)).cancelled?.reason, { why: "changed plans" });
  await requests.retry(seq, { deadline: "90d" });
  const again = await entry(seq);
  assert.equal(again.cancelled, undefined);
  assert(Date.parse(again.deadline ?? "") < notBefore.valueOf());
  await assert.rejects(requests.submit({}, { priority: 101 }), (error) => Problem.is(error, "invalid-parameter"));
  const late = await requests.submit({}, { deadline: "1ms" });
  await assert.rejects(client.waitFor.done(session, late), /request 2 has failed: "deadline"/);
  await assert.rejects(client.waitFor.cancelled(session, late), RequestFailed);
  const done = await requests.submit({ job: "quick" });
  await client.withOptions({ agent: "w" }).claimNext(session, { match: { job: "quick" } }, () => 1);
  await assert.rejects(client.waitFor.cancelled(session, done), (error) => Problem.is(error, "condition-not-met"));
});

test("a question has choices", async (t) => {
  const { client } = await start(t);
  const asked = client.ask(session, "Which printer?", { options: ["floor 1", "floor 3"], strictOptions: false });
  const { entries } = await client.waitFor.entries(session, "questions");
  const item = { question: "Which printer?", options: ["floor 1", "floor 3"], strict_options: false };
  assert.deepEqual(entries[0]?.item, item);
  const params = { path: { session, seq: 1 } };
  await client.PUT("/v1/sessions/{session}/questions/{seq}/answer", { params, body: { answer: "floor 3" } });
  assert.equal((await asked).answer, "floor 3");
});

test("a worker outlasts a server that is killed", async (t) => {
  const { server, client, requests, lines, hire, entry } = await start(t);
  const seq = await requests.submit({});
  const stop = hire("w", async (task) => {
    if (task.seq === seq) await server.kill();
    return "kept";
  });
  while (server.isRunning) await new Promise((resolve) => setTimeout(resolve, 10));
  await server.start();
  const next = await requests.submit({});
  assert.equal((await client.waitFor.done(session, next)).done?.result, "kept");
  await stop();
  assert.equal((await entry(seq)).done?.result, "kept");
  assert.deepEqual(lines, []);
});

const WORKER = `
import { createClient } from "agent-blackboard";
const [, url, agent, ttl] = process.argv;
const { requests } = createClient({ url, agent }).session("${session}");
await requests.work(({ seq }) => new Promise(() => console.log(seq)), { ttlMs: Number(ttl) });
`;

/** Runs a worker that holds its first request, and kills it. */
async function killed(t: TestContext, url: string, agent: string, ttlMs: number): Promise<number> {
  const program = ["--input-type=module", "--eval", WORKER, url, agent, String(ttlMs)];
  const worker = spawn(process.execPath, program, { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => worker.kill("SIGKILL"));
  const [line] = (await once(createInterface(worker.stdout), "line")) as [string];
  const ended = once(worker, "exit");
  worker.kill("SIGKILL");
  await ended;
  return Number(line);
}

test("another worker takes up what a killed one held", async (t) => {
  const { server, client, requests, hire } = await start(t);
  const seq = await requests.submit({ job: "long" });
  assert.equal(await killed(t, server.url, "killed", 1_000), seq);
  let past: Task["pastAttempts"] = [];
  const stop = hire("heir", ({ pastAttempts }) => {
    past = pastAttempts;
    return "taken up";
  });
  assert.equal((await client.waitFor.done(session, seq)).done?.agent, "heir");
  await stop();
  assert.deepEqual([past.at(-1)?.agent, past.at(-1)?.outcome], ["killed", "lapsed"]);
});

test("a worker started again takes up its own claims", async (t) => {
  const { server, client, requests, lines, hire, entry } = await start(t);
  const claim = async (agent: string, seq: number, ttl: string) => {
    const params = { path: { session, seq } };
    await client.withOptions({ agent }).PUT(`${REQUEST}/claim`, { params, body: { ttl } });
  };
  const renewed = await requests.submit({});
  await claim("w", renewed, "10m");
  const left = await requests.submit({}, { attempts: 1 });
  assert.equal(await killed(t, server.url, "w", 600_000), left);
  const other = await requests.submit({});
  await claim("other", other, "10m");
  const first = await requests.submit({});
  const stop = hire("w", ({ seq }) => seq, { ttlMs: 20_000 });
  // It has looked for earlier claims. One is renewed before half a ttl is over, and looked at before the one below.
  await client.waitFor.done(session, first);
  await claim("w", renewed, "20m");
  const done = await client.waitFor.done(session, left);
  await stop();
  assert.deepEqual([done.done?.result, done.past_attempts?.map(({ outcome }) => outcome)], [left, ["released"]]);
  assert.deepEqual(lines, [`request ${left}: attempt released: an earlier run of this agent had claimed it`]);
  const held = [await entry(renewed), await entry(other)];
  assert.deepEqual(
    held.map((kept) => [kept.claim?.agent, kept.past_attempts]),
    [
      ["w", undefined],
      ["other", undefined],
    ],
  );
});

test("workers beside each other do each request once", async (t) => {
  const { client, requests, hire } = await start(t);
  const seqs = await Promise.all(numbers(60).map((n) => requests.submit({ n })));
  const stops = numbers(4).map((n) =>
    hire(`w${n}`, async ({ item, guard }) => {
      const params = { path: { session }, query: guard };
      await client.withOptions({ agent: `w${n}` }).POST("/v1/sessions/{session}/trajectories", { params, body: item });
    }),
  );
  await Promise.all(seqs.map((seq) => client.waitFor.done(session, seq)));
  await Promise.all(stops.map((stop) => stop()));
  const done = (await steps(client, session)).map(({ n }) => n as number);
  assert.deepEqual(
    done.sort((a, b) => a - b),
    numbers(60),
  );
});
