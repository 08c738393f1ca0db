/** Updates of the state by several writers. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Problem } from "agent-blackboard";

import { numbers, startServer } from "./server.js";

const session = "state";
const STATE = "/v1/sessions/{session}/state/{path}";

test("a value is made and updated", async (t) => {
  const client = (await startServer(t)).client();
  const add = (n = 0) => n + 1;
  const first = await client.updateState<number>(session, "counts/a", add);
  assert.deepEqual([first.value, first.revision], [1, 1]);
  const second = await client.updateState(session, ["counts", "a"], (n?: number) => Promise.resolve(add(n)));
  assert.equal(second.value, 2);
  const header = { "If-Match": second.etag };
  await client.PUT(STATE, { params: { path: { session, path: "counts/a" }, header }, body: 3 });
  const keyed = await client.updateState<number>(session, ["a/b", "~"], add);
  assert.equal(keyed.value, 1);
  const whole = await client.updateState<Record<string, unknown>>(session, "", (state) => ({ ...state, more: true }));
  assert.deepEqual(whole.value, { counts: { a: 3 }, "a/b": { "~": 1 }, more: true });
});

test("a value that changes meanwhile is read again", async (t) => {
  const client = (await startServer(t)).client();
  const params = { path: { session, path: "list" } };
  // A large one is not in the refusal, an absent one neither.
  const others: ((seen: unknown) => Promise<unknown>)[] = [
    () => client.PUT(STATE, { params, body: ["small"] }),
    () => client.PUT(STATE, { params, body: ["x".repeat(100_000)] }),
    () => client.DELETE(STATE, { params }),
  ];
  const seen: number[] = [];
  const { value } = await client.updateState<string[]>(session, "list", async (list) => {
    seen.push(list?.[0]?.length ?? 0);
    await others.shift()?.(list);
    return [...(list ?? []), "own"];
  });
  assert.deepEqual(seen, [0, 5, 100_000, 0]);
  assert.deepEqual(value, ["own"]);
});

test("an update ends at its limit, by its signal, and with its function", async (t) => {
  const client = (await startServer(t)).client();
  const params = { path: { session, path: "n" } };
  let n = 0;
  const contended = async () => {
    await client.PUT(STATE, { params, body: (n += 1) });
    return -1;
  };
  await assert.rejects(client.updateState(session, "n", contended, { limitMs: 100 }), (error) => {
    return Problem.is(error, "precondition-failed");
  });
  const reason = new Error("enough");
  await assert.rejects(client.updateState(session, "n", contended, { signal: AbortSignal.timeout(100) }), {
    name: "TimeoutError",
  });
  await assert.rejects(
    client.updateState(session, "n", () => Promise.reject(reason)),
    reason,
  );
  await assert.rejects(
    client.updateState(session, "n/below", () => 1),
    (error) => Problem.is(error, "not-an-object"),
  );
  await client.updateState(session, "gone", () => 1, { ttlMs: 50 });
  await client.waitFor.state(session, "gone", "absent");
});

test("eight writers lose no update", async (t) => {
  const client = (await startServer(t)).client();
  const writer = async () => {
    for (let n = 0; n < 25; n += 1) await client.updateState<number>(session, "count", (count = 0) => count + 1);
  };
  await Promise.all(numbers(8).map(writer));
  const { data } = await client.GET(STATE, { params: { path: { session, path: "count" } } });
  assert.equal(data, 200);
});
