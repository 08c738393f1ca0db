/** Errors: foreign servers, broken answers, refusals, time limits, and values that are no JSON. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";

import {
  BlackboardError,
  ConnectionFailed,
  createClient,
  IncompatibleServer,
  Problem,
  UnexpectedAnswer,
  UnsupportedValue,
} from "agent-blackboard";

import { greeting, http, startForeign } from "./network.js";
import { numbers, startServer, steps } from "./server.js";

const LOG = "/v1/sessions/{session}/trajectories";
const params = { path: { session: "errors" } };

/** Appends to a foreign server with a token, and returns the error and the heads that the server got. */
async function appendTo(t: TestContext, answer: (path: string, count: number) => string, timeoutMs = 5_000) {
  const { url, heads } = await startForeign(t, answer);
  const client = createClient({ url, token: "bb_secret", timeoutMs });
  const error = await client.POST(LOG, { params, body: {} }).then(
    () => assert.fail("it was answered"),
    (error: unknown) => error,
  );
  assert(error instanceof BlackboardError);
  assert(!error.message.includes("bb_secret"));
  return { error, heads };
}

test("a wrong address is named with the time limit and the cause", async () => {
  const client = createClient({ url: "http://127.0.0.1:2", timeoutMs: 2_000 });
  await assert.rejects(client.POST(LOG, { params, body: {} }), (error) => {
    assert(error instanceof ConnectionFailed);
    assert.match(
      error.message,
      /^POST \/v1\/sessions\/errors\/trajectories: http:\/\/127\.0\.0\.1:2 gave no complete answer within 2 s \(\d+ tries\): .*ECONNREFUSED/,
    );
    // It was never sent.
    assert.equal(error.outcome, undefined);
    return true;
  });
  await assert.rejects(client.server(), /^ConnectionFailed: GET \/: http:\/\/127\.0\.0\.1:2 gave no complete answer/);
});

test("a server that does not answer is given up at the limit", async (t) => {
  const { url } = await startForeign(t, (path) => (path === "/" ? greeting() : ""));
  const client = createClient({ url, fetch: (input, init) => hang(input as Request, init) });
  await client.server();
  const stalled = client.withOptions({ timeoutMs: 300 });
  await assert.rejects(stalled.POST(LOG, { params, body: {} }), (error) => {
    assert(error instanceof ConnectionFailed);
    assert.match(error.message, /within 0\.3 s \(\d tr(y|ies)\): no answer$/);
    assert.equal(error.outcome, "unknown");
    assert.match(error.idempotencyKey ?? "", /^[0-9a-f]{32}$/);
    return true;
  });
});

/** Answers `GET /` alone. */
function hang(request: Request, init?: RequestInit): Promise<Response> {
  if (request.method === "GET") return fetch(request, init);
  return new Promise((_, reject) => {
    request.signal.addEventListener("abort", () => reject(request.signal.reason));
  });
}

test("addresses and tokens of no possible form are refused", () => {
  for (const url of ["", "127.0.0.1:8733", "ftp://a", "http://u:p@a", "http://a?b", "http://a#b", "http://a:99999"]) {
    assert.throws(() => createClient({ url }), /is not a server's address, such as http:\/\/127\.0\.0\.1:8733/, url);
  }
  for (const token of ["", "bb_a\n", "bb ü"]) {
    assert.throws(() => createClient({ url: "http://a", token }), UnsupportedValue, token);
  }
  for (const timeoutMs of [0, -1, NaN]) {
    assert.throws(() => createClient({ url: "http://a", timeoutMs }), /give a positive number of milliseconds/);
  }
  assert.equal(createClient({ url: new URL("https://a.example/board/") }).url, "https://a.example/board");
});

test("a wrong token is a problem, and a refused token is not repeated", async (t) => {
  const server = await startServer(t);
  const admin = server.token("admin", "--scopes", "admin");
  const none = server.client().GET("/v1/sessions");
  await assert.rejects(none, (error) => Problem.is(error, "unauthorized"));
  const wrong = server.client({ token: `${admin.slice(0, -4)}AAAA` });
  await assert.rejects(wrong.POST(LOG, { params, body: {} }), (error) => {
    assert(Problem.is(error, "unauthorized"));
    assert.equal(error.status, 401);
    return true;
  });
  await assert.rejects(wrong.events("errors").next(), (error) => Problem.is(error, "unauthorized"));
  const client = server.client({ token: admin });
  await client.POST(LOG, { params, body: {} });
  server.revoke("admin");
  await assert.rejects(client.POST(LOG, { params, body: {} }), (error) => Problem.is(error, "unauthorized"));
});

test("a token's agent and scopes hold", async (t) => {
  const server = await startServer(t);
  const admin = server.client({ token: server.token("admin", "--scopes", "admin") });
  const reader = server.client({ token: server.token("reader", "--scopes", "read") });
  const worker = server.client({ token: server.token("worker", "--agent", "AppAgent"), agent: "Other" });
  await worker.POST(LOG, { params, body: {} });
  const { data } = await admin.GET(LOG, { params });
  assert.equal(data.entries[0]?.agent, "AppAgent");
  await assert.rejects(reader.POST(LOG, { params, body: {} }), (error) => Problem.is(error, "forbidden"));
});

test("a page of HTML is no answer, and gets no token", async (t) => {
  const { error, heads } = await appendTo(t, () => http("200 OK", "text/html", "<html><body>Welcome"));
  assert(error instanceof UnexpectedAnswer);
  assert.match(
    error.message,
    /is 200 with text\/html, not JSON; .*check that the address is a Blackboard's: "<html><body>Welcome"$/,
  );
  assert.equal(heads.length, 1);
  assert.doesNotMatch(heads.join(), /bb_secret/);
});

test("HTML behind the first answer is no answer either", async (t) => {
  const page = http("404 Not Found", "text/html", "<h1>Nothing\n here</h1>");
  const { error } = await appendTo(t, (path) => (path === "/" ? greeting() : page));
  assert(error instanceof UnexpectedAnswer);
  assert.equal(error.status, 404);
  assert.match(
    error.message,
    /not a problem document; check that the address is a Blackboard's: "<h1>Nothing here<\/h1>"$/,
  );
});

test("a redirect is named and not followed", async (t) => {
  const moved = http("301 Moved", "text/html", "", ["Location: https://login.example/"]);
  const { error, heads } = await appendTo(t, () => moved);
  assert.match(error.message, /a redirect to https:\/\/login\.example\/; a Blackboard never redirects/);
  assert.equal(heads.length, 1);
});

test("a server of another name or version gets nothing", async (t) => {
  for (const [name, version] of [
    ["whiteboard", "0.1.0"],
    ["blackboard", "0.2.0"],
    ["blackboard", "1.0.0"],
  ] as const) {
    const { error, heads } = await appendTo(t, () => greeting(name, version));
    assert(error instanceof IncompatibleServer);
    assert.equal(error.server, name);
    assert.equal(error.version, version);
    assert.match(error.message, new RegExp(`is ${name} ${version}; this client needs blackboard 0\\.1\\.x`));
    assert.equal(heads.length, 1);
  }
  for (const body of ["{}", "[]", "null", '"x"']) {
    const { error } = await appendTo(t, () => http("200 OK", "application/json", body));
    assert.match(error.message, /has no server's name and version/);
  }
});

test("a truncated answer is tried again, then named", async (t) => {
  const body = '{"revision":1,"etag":"';
  const cut = [
    // Less than its length, or than its chunks; and an end that nobody told.
    http("200 OK", "application/json", body, ["Content-Length: 100"]),
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n16\r\n${body}\r\n`,
    `HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n${body}`,
  ];
  const written = http("201 Created", "application/json", '{"revision":1}\n');
  for (const answer of cut) {
    const { url, heads } = await startForeign(t, (path, count) =>
      path === "/" ? greeting() : count < 4 ? answer : written,
    );
    const { data } = await createClient({ url }).POST(LOG, { params, body: {} });
    assert.equal(data.revision, 1);
    const keys = heads.slice(1).map((head) => /idempotency-key: (\S+)/i.exec(head)?.[1]);
    assert.deepEqual([keys.length, new Set(keys).size], [3, 1]);
  }
  const named = cut.map((answer) => appendTo(t, (path) => (path === "/" ? greeting() : answer), 2_000));
  for (const { error, heads } of await Promise.all(named)) {
    assert(error instanceof ConnectionFailed || error instanceof UnexpectedAnswer);
    if (error instanceof UnexpectedAnswer) assert.match(error.message, /is incomplete JSON: it ends with /);
    assert.equal(error.outcome, "unknown");
    assert.match(heads.at(-1) ?? "", new RegExp(`idempotency-key: ${error.idempotencyKey}\r\n`, "i"));
  }
});

test("a proxy's refusal is tried again until it goes by", async (t) => {
  const away = http("502 Bad Gateway", "text/html", "<h1>Bad Gateway</h1>");
  const written = http("201 Created", "application/json", '{"revision":1}\n');
  const { url, heads } = await startForeign(t, (path, count) =>
    path === "/" ? greeting() : count < 4 ? away : written,
  );
  const { data } = await createClient({ url }).POST(LOG, { params, body: {} });
  assert.equal(data.revision, 1);
  assert.equal(heads.length, 4);
  const { error } = await appendTo(t, () => http("503 Away", "text/html", "", ["Retry-After: 3600"]));
  assert(error instanceof UnexpectedAnswer);
  assert.equal(error.retryAfterMs, 3_600_000);
  const { error: later } = await appendTo(t, () =>
    http("503 Away", "text/html", "", ["Retry-After: Fri, 01 Jan 2100 00:00:00 GMT"]),
  );
  assert((later.retryAfterMs ?? 0) > 3_600_000);
});

test("a write that may have been committed keeps its key, whatever the last refusal", async (t) => {
  // No try follows an answer, which the limit might cut off.
  const problem = (status: string, code: string, more: object = {}) =>
    http(status, "application/problem+json", JSON.stringify({ code, detail: "d", retryable: true, ...more }), [
      "Retry-After: 3600",
    ]);
  const overloaded = problem("503 Overloaded", "overloaded", { status: 503 });
  const final = problem("412 Refused", "precondition-failed", { retryable: false });
  const cases: [string[], "unknown" | undefined][] = [
    [[overloaded], undefined],
    [[problem("503 Away", "store-unavailable", { outcome: "unknown" })], "unknown"],
    // The first try is cut off without an answer.
    [["", overloaded], "unknown"],
    [["", problem("401 Unauthorized", "unauthorized", { retryable: false })], "unknown"],
    [["", final], undefined],
  ];
  for (const [answers, outcome] of cases) {
    let tries = 0;
    const answer = () => answers[tries++] ?? answers.at(-1) ?? "";
    const { error } = await appendTo(t, (path) => (path === "/" ? greeting() : answer()), 30_000);
    assert(error instanceof Problem);
    assert.equal(error.outcome, outcome, error.message);
    assert.equal(error.idempotencyKey !== undefined, outcome === "unknown");
  }
});

test("a try that the limit cuts off does not hide the refusal before it", async (t) => {
  const refusal = JSON.stringify({ code: "overloaded", detail: "d", retryable: true });
  const { url } = await startForeign(t, (path) =>
    path === "/" ? greeting() : http("503 Overloaded", "application/problem+json", refusal),
  );
  // A try in the second half of the time has less than a try's limit.
  let half: number | undefined;
  const fetchAtFirst: typeof fetch = (input, init) => {
    half ??= performance.now() + 1_050;
    return (performance.now() < half ? fetch : hang)(input as Request, init);
  };
  const client = createClient({ url, timeoutMs: 2_000, fetch: fetchAtFirst });
  await assert.rejects(client.POST(LOG, { params, body: {} }), (error) => Problem.is(error, "overloaded"));
});

test("JSON without a code is no problem", async (t) => {
  const foreign = http("400 Bad Request", "application/problem+json", '{"title":"?"}');
  const { error } = await appendTo(t, (path) => (path === "/" ? greeting() : foreign));
  assert(error instanceof UnexpectedAnswer);
});

test("a stream that is none of events is refused", async (t) => {
  const { url } = await startForeign(t, (path) =>
    path === "/" ? greeting() : http("200 OK", "application/json", "{}", ["Blackboard-Revision: 0"]),
  );
  await assert.rejects(createClient({ url }).events("errors").next(), /answered application\/json, not a stream/);
});

test("an event that is no JSON is refused", async (t) => {
  const broken = "id: 1\nevent: appended\ndata: {\n\n";
  const { url } = await startForeign(t, (path) =>
    path === "/" ? greeting() : http("200 OK", "text/event-stream", broken, ["Blackboard-Revision: 0"]),
  );
  await assert.rejects(
    createClient({ url }).events("errors").next(),
    /the event 'appended' with the id '1' is not JSON/,
  );
});

test("a stream of events is no answer to a call", async (t) => {
  const client = (await startServer(t)).client();
  const follow = client.GET("/v1/sessions/{session}/events", { params });
  await assert.rejects(follow, /is 200 with text\/event-stream, not JSON/);
  const query = { after: 0, wait: "50ms" };
  const page = await client.GET("/v1/sessions/{session}/events", {
    params: { ...params, query },
    headers: { Accept: "application/json" },
  });
  assert.deepEqual(page.data.events, []);
});

test("a rate limit is waited for as long as the server says", async (t) => {
  const server = await startServer(t, "--token-rate", "1");
  const client = server.client({ token: server.token("admin", "--scopes", "admin") });
  for (let n = 0; n < 3; n += 1) await client.POST(LOG, { params, body: { n } });
  const hurried = client.withOptions({ timeoutMs: 2_000 });
  await assert.rejects(Promise.all(numbers(9).map(() => hurried.GET("/v1/sessions"))), (error) => {
    assert(Problem.is(error, "rate-limited"));
    assert.equal(error.retryable, true);
    assert((error.retryAfterMs ?? 0) >= 1000);
    return true;
  });
});

test("a refusal that a retry can help is thrown at the limit", async (t) => {
  const client = (await startServer(t)).client({ timeoutMs: 3_000 });
  await client.POST(LOG, { params, body: {} });
  const late = client.GET(LOG, { params: { ...params, query: { min_revision: 9, wait: "100ms" } } });
  await assert.rejects(late, (error) => Problem.is(error, "revision-not-reached") && error.retryable);
});

test("a signal ends a call with its reason", async (t) => {
  const client = (await startServer(t)).client();
  await client.POST(LOG, { params, body: {} });
  const stop = new AbortController();
  const reason = new Error("enough");
  const waiting = client.GET(LOG, { params: { ...params, query: { after: 1, wait: "60s" } }, signal: stop.signal });
  stop.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(client.GET("/v1/sessions", { signal: AbortSignal.abort(reason) }), reason);
  const unreachable = createClient({ url: "http://127.0.0.1:2" });
  await assert.rejects(unreachable.GET("/v1/sessions", { signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
});

test("values that are no JSON are refused with their place", async (t) => {
  const client = (await startServer(t)).client();
  const circle: Record<string, unknown> = {};
  circle["self"] = { circle };
  let deep: unknown = 0;
  for (let level = 0; level < 1001; level += 1) deep = [deep];
  const cases: [unknown, RegExp][] = [
    [{ a: undefined }, /^\/a: undefined is not a JSON value/],
    [{ a: [1, NaN] }, /^\/a\/1: NaN is not a JSON number/],
    [{ a: -Infinity }, /^\/a: -Infinity is not a JSON number/],
    [{ "x/y~": 1n }, /^\/x~1y~0: a BigInt is not a JSON number/],
    [{ a: "\ud800" }, /^\/a: the text has a lone surrogate/],
    [{ "\udc00": 1 }, /the text has a lone surrogate/],
    [{ a: () => 1 }, /^\/a: a function is not a JSON value/],
    [{ a: Symbol("s") }, /^\/a: a symbol is not a JSON value/],
    [{ a: new Map([[1, 2]]) }, /^\/a: a Map is not a JSON value/],
    [{ a: new Uint8Array(1) }, /^\/a: a Uint8Array is not a JSON value/],
    [{ a: [, 1] }, /^\/a\/0: undefined is not a JSON value/],
    [{ a: new Date(NaN) }, /^\/a: the date is invalid/],
    [circle, /^\/self\/circle: the value contains itself/],
    [{ deep }, /: the value has more than 1000 levels/],
    [undefined, /^undefined is not a JSON value/],
  ];
  for (const [body, message] of cases) {
    await assert.rejects(client.POST(LOG, { params, body: body as {} }), (error) => {
      assert(error instanceof UnsupportedValue);
      assert.match(error.message, message);
      return true;
    });
  }
  const path = { session: "errors", path: "a" };
  await assert.rejects(
    client.updateState("errors", "a", () => undefined),
    UnsupportedValue,
  );
  await assert.rejects(client.waitFor.state("errors", "a", { equals: NaN }), UnsupportedValue);
  await assert.rejects(client.GET("/v1/sessions/{session}/state/{path}", { params: { path } }), (error) =>
    Problem.is(error, "session-not-found"),
  );
});

test("dates, null, classes and shared parts are JSON", async (t) => {
  const client = (await startServer(t)).client();
  class Step {
    step = 1;
  }
  const shared = { n: 1 };
  const at = new Date("2026-11-21T07:03:11.123Z");
  await client.POST(LOG, {
    params,
    body: { at, none: null, step: new Step() as {}, both: [shared, shared], yes: true },
  });
  assert.deepEqual(await steps(client, "errors"), [
    { at: "2026-11-21T07:03:11.123Z", none: null, step: { step: 1 }, both: [{ n: 1 }, { n: 1 }], yes: true },
  ]);
});
