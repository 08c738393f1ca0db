/** Routes by their types: forms of bodies and answers, names, lists and conditions. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { encodeName, NotModified, Problem, stateKeys, statePath, UnsupportedValue } from "agent-blackboard";

import { startServer } from "./server.js";

const LOG = "/v1/sessions/{session}/trajectories";
const STATE = "/v1/sessions/{session}/state/{path}";

/** One black pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

test("a session is written, read, listed and deleted", async (t) => {
  const client = (await startServer(t)).client();
  const params = { path: { session: "demo" } };
  const made = await client.PUT("/v1/sessions/{session}", { params, body: { labels: { team: "blue" } } });
  assert.equal(made.data.revision, 1);
  assert.equal(made.response.status, 201);
  const { data } = await client.GET("/v1/sessions", { params: { query: { label: ["team:blue"] } } });
  assert.deepEqual(
    data.sessions.map(({ session }) => session),
    ["demo"],
  );
  await client.DELETE("/v1/sessions/{session}", { params });
  await assert.rejects(client.GET("/v1/sessions/{session}", { params }), (error) => {
    assert(Problem.is(error, "session-not-found"));
    assert.equal(error.status, 404);
    assert.equal(error.retryable, false);
    assert.match(error.message, /^session-not-found: /);
    return true;
  });
});

test("names and keys of any characters arrive as they are", async (t) => {
  const client = (await startServer(t)).client({ agent: "Ägent, 50 %" });
  const path = { session: "a b%2F?#&$1{seq} é 🙂", seq: 1 };
  await client.POST(LOG, { params: { path }, body: { n: 1 } });
  const { data } = await client.GET(`${LOG}/{seq}`, { params: { path } });
  assert.equal(data.agent, "Ägent, 50 %");
  const keys = ["a/b", "~", "c.d", "ü"];
  await client.PUT(STATE, { params: { path: { ...path, path: statePath(...keys) } }, body: 1 });
  const state = await client.GET("/v1/sessions/{session}/state", { params: { path } });
  assert.deepEqual(state.data, { "a/b": { "~": { "c.d": { ü: 1 } } } });
  assert.deepEqual(stateKeys(statePath(...keys)), keys);
  assert.deepEqual(stateKeys(""), []);
  assert.equal(encodeName("a b/ü"), "a%20b%2F%C3%BC");
});

test("names that would change the address are not sent", async (t) => {
  const server = await startServer(t);
  const client = server.client();
  await client.POST(LOG, { params: { path: { session: "kept" } }, body: {} });
  for (const session of ["", ".", "..", "\ud800", undefined as unknown as string]) {
    await assert.rejects(client.DELETE("/v1/sessions/{session}", { params: { path: { session } } }), UnsupportedValue);
  }
  for (const seq of [NaN, 1.5, Infinity]) {
    await assert.rejects(
      client.DELETE(`${LOG}/{seq}`, { params: { path: { session: "kept", seq } } }),
      /the path parameter 'seq' is .*; give a string or a whole number/,
    );
  }
  await assert.rejects(client.DELETE(STATE, { params: { path: { session: "kept", path: ".." } } }), UnsupportedValue);
  assert.throws(() => server.client({ agent: ".." }), UnsupportedValue);
  assert.equal((await client.GET("/v1/sessions")).data.sessions.length, 1);
});

test("a list in a query is one list, whatever its names have", async (t) => {
  const client = (await startServer(t)).client();
  const path = { session: "lists" };
  const item = { step: 1, cost: 0.5, "a,b": 2, "[c": 3, "": 4 };
  await client.POST(LOG, { params: { path }, body: item });
  const shown = async (...keys: string[]) => {
    const { data } = await client.GET(LOG, { params: { path, query: { keys, steps: ["1", "7"] } } });
    return data.entries[0]?.item;
  };
  assert.deepEqual(await shown("step", "cost"), { step: 1, cost: 0.5 });
  assert.deepEqual(await shown("a,b"), { "a,b": 2 });
  assert.deepEqual(await shown("[c"), { "[c": 3 });
  assert.deepEqual(await shown(""), { "": 4 });
  assert.deepEqual(await shown(), {});
});

test("bytes, forms and lines are sent as they are", async (t) => {
  const client = (await startServer(t)).client();
  const path = { session: "bodies" };
  const lines = '{"step":1}\n{"step":2}\n';
  const headers = { "Content-Type": "application/x-ndjson" };
  const appended = await client.POST(LOG, { params: { path }, body: lines, headers });
  assert.equal(appended.data.entries?.length, 2);

  const bytes = new Uint8Array([0, 255, 13, 10]);
  const type = { "Content-Type": "application/x-thing" };
  const blob = await client.POST("/v1/sessions/{session}/blobs", { params: { path }, body: bytes, headers: type });
  const { sha256 } = blob.data;
  const read = await client.GET("/v1/sessions/{session}/blobs/{sha256}", {
    params: { path: { ...path, sha256 } },
    parseAs: "arrayBuffer",
  });
  assert.deepEqual(new Uint8Array(read.data), bytes);
  await assert.rejects(
    client.POST("/v1/sessions/{session}/blobs", { params: { path }, body: bytes }),
    /bytes need their media type: give the header Content-Type/,
  );

  const streamed = new Blob([bytes]).stream();
  const again = await client.POST("/v1/sessions/{session}/blobs", { params: { path }, body: streamed, headers: type });
  assert.equal(again.data.sha256, sha256);

  const form = new FormData();
  form.set("image", new Blob([PNG], { type: "image/png" }), "a.png");
  await client.POST("/v1/sessions/{session}/screenshots", { params: { path }, body: form });
  const image = await client.GET("/v1/sessions/{session}/screenshots/{seq}/image", {
    params: { path: { ...path, seq: 1 } },
    parseAs: "blob",
  });
  assert.equal((image.data as Blob).size, PNG.length);

  // A text without another media type is JSON.
  await client.POST(LOG, { params: { path }, body: "said" });
  const page = await client.GET(LOG, { params: { path, query: { latest: 1 } } });
  assert.deepEqual(page.data.entries[0]?.item, { text: "said" });
});

test("answers come as JSON, text, bytes or a stream", async (t) => {
  const client = (await startServer(t)).client();
  const params = { path: { session: "answers" } };
  await client.POST(LOG, { params, body: [{ step: 1 }, { step: 2 }] });
  const parts = await client.GET("/v1/sessions/{session}/prompt", { params });
  assert(Array.isArray(parts.data));
  const text = await client.GET("/v1/sessions/{session}/prompt", {
    params: { ...params, query: { format: "markdown" } },
    parseAs: "text",
  });
  assert.match(text.data, /step/);
  const stream = await client.GET(LOG, { params, headers: { Accept: "application/x-ndjson" }, parseAs: "stream" });
  assert.equal(await new Response(stream.data).text(), '{"step":1}\n{"step":2}\n');
  await assert.rejects(
    client.GET(LOG, { params, headers: { Accept: "application/x-ndjson" } }),
    /is 200 with application\/x-ndjson, not JSON; ask for another form with 'parseAs'/,
  );
});

test("conditions hold, or are refused with what there is", async (t) => {
  const client = (await startServer(t)).client();
  const params = { path: { session: "conditions", path: "a" } };
  const first = await client.PUT(STATE, { params, body: { n: 1 } });
  const etag = first.data.etag ?? "";
  await client.PUT(STATE, { params: { ...params, header: { "If-Match": etag } }, body: { n: 2 } });
  const stale = client.PUT(STATE, { params: { ...params, header: { "If-Match": etag } }, body: { n: 3 } });
  const read = await client.GET(STATE, { params });
  const tag = read.response.headers.get("ETag") ?? "";
  await assert.rejects(stale, (error) => {
    assert(Problem.is(error, "precondition-failed"));
    assert.deepEqual(error.current, { n: 2 });
    assert.equal(error.etag, tag);
    assert.equal(error.revision, 2);
    return true;
  });
  await assert.rejects(
    client.GET(STATE, { params: { ...params, header: { "If-None-Match": tag } } }),
    (error) => error instanceof NotModified && error.etag === tag,
  );
});

test("a problem tells the faulty parts of a body", async (t) => {
  const client = (await startServer(t)).client();
  const append = client.POST(LOG, { params: { path: { session: "faults" } }, body: [{}, 7 as unknown as string] });
  await assert.rejects(append, (error) => {
    assert(Problem.is(error, "unsupported-item"));
    assert.equal(error.errors[0]?.pointer, "/1");
    assert.match(error.message, /^unsupported-item: .*\/1: /);
    return true;
  });
});

test("a client with other options has the same server", async (t) => {
  const server = await startServer(t);
  const client = server.client({ agent: "one" });
  const other = client.withOptions({ agent: "two" });
  const params = { path: { session: "agents" } };
  await client.POST(LOG, { params, body: {} });
  await other.POST(LOG, { params, body: {} });
  await other.withOptions({ agent: undefined }).POST(LOG, { params, body: {} });
  const { data } = await client.GET(LOG, { params });
  assert.deepEqual(
    data.entries.map(({ agent }) => agent),
    ["one", "two", undefined],
  );
  assert.equal(other.url, server.url);
});

test("the server tells its name and version", async (t) => {
  const client = (await startServer(t)).client();
  const { name, version } = await client.server();
  assert.equal(name, "blackboard");
  assert.match(version, /^0\.1\./);
});
