/** Claims: work that is done, fails, is given back or is lost. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ConnectionFailed, Problem } from "agent-blackboard";
import type { Client } from "agent-blackboard";

import { aborted, append, numbers, signalled, startServer, steps } from "./server.js";

const REQUESTS = "/v1/sessions/{session}/requests";
const session = "work";

async function post(client: Client, body: Record<string, unknown>, attempts?: number): Promise<void> {
  const query = attempts === undefined ? {} : { attempts };
  await client.POST(REQUESTS, { params: { path: { session }, query }, body });
}

async function entry(client: Client, seq = 1) {
  return (await client.GET(`${REQUESTS}/{seq}`, { params: { path: { session, seq } } })).data;
}

function unwanted(): never {
  assert.fail("there is nothing to work on");
}

test("the next request that matches is worked on and done", async (t) => {
  const client = (await startServer(t)).client({ agent: "w" });
  await post(client, { device: "windows" });
  await post(client, { device: "linux", job: "count" });
  const ended = await client.claimNext(session, { match: { device: "linux" } }, async (task) => {
    assert.equal(task.seq, 2);
    assert.deepEqual(task.item, { device: "linux", job: "count" });
    assert.equal(task.entry.claim?.agent, "w");
    const params = { path: { session }, query: task.guard };
    await client.POST("/v1/sessions/{session}/trajectories", { params, body: { step: 1 } });
    return { pages: 3 };
  });
  assert.deepEqual(ended, { seq: 2, outcome: "done", result: { pages: 3 } });
  assert.deepEqual((await entry(client, 2)).done?.result, { pages: 3 });
  assert.equal(await client.claimNext(session, { match: { device: "linux" } }, unwanted), undefined);
  assert.equal(await client.claimNext("nowhere", {}, unwanted), undefined);
  const silent = await client.claimNext(session, {}, () => {});
  assert.deepEqual(silent, { seq: 1, outcome: "done", result: undefined });
});

test("a request that comes later is waited for", async (t) => {
  const client = (await startServer(t)).client({ agent: "w" });
  const ended = client.claimNext(session, { waitMs: 20_000 }, () => 1);
  await post(client, {});
  assert.equal((await ended)?.outcome, "done");
  assert.equal(await client.claimNext(session, { waitMs: 50 }, unwanted), undefined);
});

test("work that throws fails the request, with the reason", async (t) => {
  const client = (await startServer(t)).client({ agent: "w" });
  const broken = new Error("no paper \ud800");
  await post(client, {}, 2);
  for (const failures of [1, 2]) {
    // The second attempt waits for the end of the pause.
    const ended = await client.claimNext(session, { waitMs: 60_000 }, () => Promise.reject(broken));
    assert.deepEqual(ended, { seq: 1, outcome: "failed", error: broken });
    assert.equal((await entry(client)).failures, failures);
  }
  assert.equal((await entry(client)).failed?.reason, "Error: no paper \ufffd");
  await post(client, {}, 1);
  await client.claimNext(session, {}, () => Promise.reject("just a text"));
  assert.equal((await entry(client, 2)).failed?.reason, "just a text");
  await post(client, {}, 1);
  await client.claimNext(session, {}, () => Promise.reject({ code: 7 }));
  assert.deepEqual((await entry(client, 3)).failed?.reason, { code: 7 });
  await post(client, {}, 1);
  await client.claimNext(session, {}, () => Promise.reject({ code: 7n }));
  assert.equal((await entry(client, 4)).failed?.reason, "[object Object]");
});

test("work that throws leaves room to other requests", async (t) => {
  const client = (await startServer(t)).client({ agent: "w" });
  await post(client, { n: 1 });
  await post(client, { n: 2 });
  for (const pauseMs of [1_000, 2_000]) {
    const match = { n: 1 };
    await client.claimNext(session, { match, waitMs: 60_000 }, () => Promise.reject("broken"));
    const { past_attempts: past = [], not_before: notBefore = "" } = await entry(client);
    assert.equal(Date.parse(notBefore) - Date.parse(past.at(-1)?.to ?? ""), pauseMs);
  }
  assert.equal((await client.claimNext(session, {}, () => 1))?.seq, 2);
});

test("a result that cannot be stored fails the request", async (t) => {
  const client = (await startServer(t)).client({ agent: "w" });
  await post(client, {}, 1);
  const odd = await client.claimNext(session, {}, () => 1n);
  assert.equal(odd?.outcome, "failed");
  assert.match(String((await entry(client)).failed?.reason), /BigInt/);
  await post(client, {}, 1);
  const large = await client.claimNext(session, {}, () => "x".repeat(2 * 1024 * 1024));
  assert(large?.outcome === "failed" && large.error instanceof Problem);
  assert.match(String((await entry(client, 2)).failed?.reason), /^Problem: /);
});

test("a request that is given back goes to the next", async (t) => {
  const client = (await startServer(t)).client({ agent: "w" });
  await post(client, {}, 1);
  const ended = await client.claimNext(session, {}, async (task) => {
    await task.release();
    await task.release();
  });
  assert.deepEqual(ended, { seq: 1, outcome: "released" });
  const other = await client.withOptions({ agent: "other" }).claimNext(session, {}, () => "done");
  assert.equal(other?.outcome, "done");
});

// A claim that is to be kept has a time that a slow machine cannot outlast, so these wait beside each other.
describe("claims and their time", { concurrency: true }, () => {
  const ttlMs = 9_000;

  test("a claim is renewed for as long as the work goes on", async (t) => {
    const client = (await startServer(t)).client({ agent: "w" });
    await post(client, {}, 1);
    const renewed = signalled();
    const ends: number[] = [];
    const watched = client.withOptions({
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (!(input as Request).url.includes("/claim?claim=") || !response.ok) return response;
        const { claim } = (await response.clone().json()) as { claim: { expires_at: string } };
        if (ends.push(Date.parse(claim.expires_at)) === 3) renewed.resolve();
        return response;
      },
    });
    const ended = await watched.claimNext(session, { ttlMs }, async ({ entry }) => {
      ends.push(Date.parse(entry.claim?.expires_at ?? ""));
      await renewed.promise;
    });
    assert.equal(ended?.outcome, "done");
    const [claimed = 0, once = 0, twice = 0] = ends;
    assert(claimed < once && once < twice, String(ends));
    assert.equal((await entry(client)).failures, 0);
  });

  test("a claim that lapsed is won again", async (t) => {
    const client = (await startServer(t)).client({ agent: "w" });
    await post(client, {});
    const lapsed = signalled();
    const late = client.withOptions({
      fetch: async (input, init) => {
        if ((input as Request).url.includes("/claim?claim=")) await lapsed.promise;
        return fetch(input, init);
      },
    });
    let fence = 0;
    const ended = await late.claimNext(session, { ttlMs: 150 }, async (task) => {
      fence = task.guard.fence;
      while ((await entry(client)).claim !== undefined);
      lapsed.resolve();
      return "kept";
    });
    assert.deepEqual(ended, { seq: 1, outcome: "done", result: "kept" });
    assert(((await entry(client)).done?.fence ?? 0) > fence);
  });

  test("a lost claim ends the work and is reported", async (t) => {
    const client = (await startServer(t)).client({ agent: "w" });
    await post(client, {});
    const params = { path: { session, seq: 1 } };
    const ended = await client.claimNext(session, { ttlMs }, async (task) => {
      await client.DELETE(`${REQUESTS}/{seq}/claim`, { params });
      await client.withOptions({ agent: "thief" }).PUT(`${REQUESTS}/{seq}/claim`, { params, body: { ttl: "60s" } });
      const write = client.POST("/v1/sessions/{session}/trajectories", {
        params: { path: { session }, query: task.guard },
        body: {},
      });
      await assert.rejects(write, (error) => Problem.is(error, "stale-fence"));
      await aborted(task.signal);
      assert(Problem.is(task.signal.reason, "stale-fence"));
    });
    assert(ended?.outcome === "lost");
    assert.equal(ended.error.code, "stale-fence");
    assert.equal((await entry(client)).claim?.agent, "thief");
  });

  test("a claim outlasts a server that is killed", async (t) => {
    const server = await startServer(t);
    const client = server.client({ agent: "w" });
    await post(client, {});
    const [away, restarted] = [signalled(), signalled()];
    // The keys of renewals that failed: a renewal's tries have one, and another renewal has another.
    const failed = new Set<string | null>();
    const watched = client.withOptions({
      // A renewal is given up after it, while no other call may take as long.
      timeoutMs: 5_000,
      fetch: async (input, init) => {
        const { url, headers } = input as Request;
        const isRenewal = url.includes("/claim?claim=");
        try {
          const response = await fetch(input, init);
          if (isRenewal && failed.size > 0) restarted.resolve();
          return response;
        } catch (error) {
          if (isRenewal && failed.add(headers.get("Idempotency-Key")).size === 2) away.resolve();
          throw error;
        }
      },
    });
    const ended = await watched.claimNext(session, { ttlMs: 3_000 }, async () => {
      await server.kill();
      await away.promise;
      await server.start();
      await restarted.promise;
      return "kept";
    });
    assert.deepEqual(ended, { seq: 1, outcome: "done", result: "kept" });
  });
});

test("a loss is seen at the end of the work, too", async (t) => {
  const client = (await startServer(t)).client({ agent: "w" });
  const params = { path: { session, seq: 1 } };
  await post(client, {});
  for (const work of [() => 1, () => Promise.reject(new Error("broken"))]) {
    const ended = await client.claimNext<unknown>(session, {}, async () => {
      await client.DELETE(`${REQUESTS}/{seq}/claim`, { params });
      return work();
    });
    assert.equal(ended?.outcome, "lost");
  }
});

test("a signal ends the work, and the request is given back", async (t) => {
  const client = (await startServer(t)).client({ agent: "w" });
  await post(client, {}, 1);
  const stop = new AbortController();
  const reason = new Error("enough");
  const ended = client.claimNext(session, { signal: stop.signal }, async (task) => {
    stop.abort(reason);
    task.signal.throwIfAborted();
  });
  await assert.rejects(ended, reason);
  assert.equal((await entry(client)).claim, undefined);
  const waiting = new AbortController();
  const idle = client.claimNext("other", { waitMs: 60_000, signal: waiting.signal }, unwanted);
  waiting.abort(reason);
  await assert.rejects(idle, reason);
});

test("an end that cannot be told is an error", async (t) => {
  const server = await startServer(t);
  const client = server.client({ agent: "w" });
  await post(client, {});
  const ended = client.withOptions({ timeoutMs: 1_000 }).claimNext(session, {}, () => server.kill());
  await assert.rejects(ended, (error) => error instanceof ConnectionFailed && error.outcome === "unknown");
});

test("an agent is needed", async (t) => {
  const client = (await startServer(t)).client();
  await post(client, {});
  await assert.rejects(client.claimNext(session, {}, unwanted), (error) => Problem.is(error, "agent-required"));
});

test("eight workers do each of many requests once", async (t) => {
  const client = (await startServer(t)).client();
  const bodies = numbers(120).map((n) => ({ n }));
  await client.POST(REQUESTS, { params: { path: { session } }, body: bodies });
  const worker = async (name: string) => {
    const own = client.withOptions({ agent: name });
    const work = (task: { item: Record<string, unknown> }) =>
      append(own, "results", task.item["n"] as number, (task.item["n"] as number) + 1);
    while (await own.claimNext(session, {}, work));
  };
  await Promise.all(numbers(8).map((n) => worker(`w${n}`)));
  const done = (await steps(client, "results")).map(({ n }) => n as number);
  assert.deepEqual(
    done.sort((a, b) => a - b),
    numbers(120),
  );
});
