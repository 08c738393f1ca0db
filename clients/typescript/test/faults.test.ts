/** Writes during kills and cut connections: none lost, none duplicated, no error. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { createClient } from "agent-blackboard";
import type { Client } from "agent-blackboard";

import { startCuttingProxy } from "./network.js";
import { append, numbers, startServer, steps } from "./server.js";

const WRITERS = 8;
const EACH = 60;

/** Appends by several writers at once, and calls after each append with the number of all. */
async function appendAll(client: Client, appended: (count: number) => void = () => {}): Promise<void> {
  let count = 0;
  const writer = async (writer: number) => {
    for (let n = 0; n < EACH; n += 1) {
      await append(client, "faults", writer * EACH + n, writer * EACH + n + 1);
      appended((count += 1));
    }
  };
  await Promise.all(numbers(WRITERS).map(writer));
}

/** Checks that each item is there once, and those of each writer in order. */
async function check(client: Client): Promise<void> {
  const found = (await steps(client, "faults")).map(({ n }) => n as number);
  for (const writer of numbers(WRITERS)) {
    const own = found.filter((n) => Math.floor(n / EACH) === writer);
    assert.deepEqual(
      own,
      numbers(EACH).map((n) => writer * EACH + n),
    );
  }
  assert.equal(found.length, WRITERS * EACH);
}

test("writes outlast a server that is killed and started again", async (t) => {
  const server = await startServer(t);
  const client = server.client();
  const restarts: Promise<void>[] = [];
  await appendAll(client, (count) => {
    if (count % 120 === 60) restarts.push(server.kill().then(() => server.start()));
  });
  await Promise.all(restarts);
  assert.equal(restarts.length, 4);
  await check(client);
});

test("writes pass through a proxy that cuts", async (t) => {
  const server = await startServer(t);
  const proxy = await startCuttingProxy(t, server.port, 0.15);
  await appendAll(createClient({ url: proxy.url }));
  await check(server.client());
  assert.ok(proxy.cuts() > 30, `${proxy.cuts()} cuts`);
});

test("updates and claims pass through a proxy that cuts", async (t) => {
  const server = await startServer(t);
  const proxy = await startCuttingProxy(t, server.port, 0.15);
  const client = createClient({ url: proxy.url });
  const add = (n = 0) => n + 1;
  await Promise.all(
    numbers(4).map(async () => {
      for (let n = 0; n < 10; n += 1) await client.updateState<number>("faults", "count", add);
    }),
  );
  assert.equal(await server.client().waitFor.state("faults", "count", "exists"), 40);

  const body = numbers(30).map((n) => ({ n }));
  await client.POST("/v1/sessions/{session}/requests", { params: { path: { session: "faults" } }, body });
  const worker = async (name: string) => {
    const own = client.withOptions({ agent: name });
    while (
      await own.claimNext("faults", {}, async ({ item, guard }) => {
        const params = { path: { session: "faults" }, query: guard };
        await own.POST("/v1/sessions/{session}/trajectories", { params, body: item });
      })
    );
  };
  await Promise.all(numbers(3).map((n) => worker(`w${n}`)));
  const done = (await steps(server.client(), "faults")).map(({ n }) => n as number);
  assert.deepEqual(
    done.sort((a, b) => a - b),
    numbers(30),
  );
});

test("a silent connection is given up for another", async (t) => {
  const client = (await startServer(t)).client();
  await client.server();
  let tries = 0;
  const silent = client.withOptions({
    timeoutMs: 6_000,
    fetch: async (input, init) => {
      const { signal } = input as Request;
      const response = await fetch(input, init);
      // The first answer never arrives.
      if ((tries += 1) === 1) await new Promise((_, reject) => signal.addEventListener("abort", reject));
      return response;
    },
  });
  await append(silent, "faults", 0, 1);
  assert.deepEqual([tries, await steps(client, "faults")], [2, [{ n: 0 }]]);
});

test("a deletion whose answer was lost is no error", async (t) => {
  const server = await startServer(t);
  const client = server.client();
  await append(client, "faults", 0, 1);
  let lost = 0;
  const cut = client.withOptions({
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if ((input as Request).method === "DELETE" && (lost += 1) === 1) throw new TypeError("the answer is lost");
      return response;
    },
  });
  const { data, response } = await cut.DELETE("/v1/sessions/{session}", { params: { path: { session: "faults" } } });
  assert.equal(data.revision, 2);
  assert.equal(response.headers.get("Idempotency-Replayed"), "true");
});
