// Requests by Node's fetch and URLSearchParams, as a script would use them.
//
//     node tests/clients/fetch.mjs http://127.0.0.1:8733

import assert from "node:assert/strict";

const board = `${process.argv[2]}/v1/sessions/clients-fetch`;
const send = (path, method, value, headers = {}) =>
  fetch(`${board}/${path}`, {
    method,
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(value),
  });
const read = async (path, query) => (await fetch(`${board}/${path}?${new URLSearchParams(query)}`)).json();
const items = (page) => page.entries.map((entry) => entry.item);

await send("trajectories", "POST", [{ step: 1, cost: 0.5, "a,b": 1 }, { step: 2 }, { step: 3 }]);
assert.deepEqual(items(await read("trajectories", { keys: "step,cost", steps: "1,2" })), [{ step: 1, cost: 0.5 }, { step: 2 }]);
const repeated = [["keys", "step"], ["keys", "cost"], ["steps", "1"]];
assert.deepEqual(items(await read("trajectories", repeated)), [{ step: 1, cost: 0.5 }]);
assert.deepEqual(items(await read("trajectories", { keys: JSON.stringify(["a,b"]), steps: "1" })), [{ "a,b": 1 }]);

assert.equal((await send(`state/${encodeURIComponent("tasks/t1")}`, "PUT", 1)).status, 201);
assert.deepEqual(await read("state", {}), { tasks: { t1: 1 } });

const asked = await send("questions", "POST", { question: "Which printer?" });
const waited = fetch(`${new URL(asked.headers.get("location"), board)}?wait=30s&until=answered`);
assert.equal((await send("questions/1/answer", "PUT", { answer: "floor 3" })).status, 200);
assert.equal((await (await waited).json()).item.answer, "floor 3");

let { etag } = await (await send("requests", "POST", {})).json();
for (let appended = 0; appended < 3; appended += 1) {
  const next = await send("requests", "POST", {}, { "If-Match": etag });
  assert.equal(next.status, 201);
  ({ etag } = await next.json());
}
console.log("fetch: lists, state paths, asking and waiting, tags");
