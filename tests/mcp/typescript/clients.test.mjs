// Official TypeScript clients of both generations against the server. BLACKBOARD_BIN names its binary.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import * as recent from "@modelcontextprotocol/client";
import { Client as OlderClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OlderTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const binary = process.env.BLACKBOARD_BIN ?? join(repository, "target/debug/blackboard");
const about = { name: "blackboard-mcp-tests", version: "1.0.0" };
const limit = { timeout: 90_000 };

/** A PNG of one pixel. */
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

let server, data, url;

before(async () => {
  data = mkdtempSync(join(tmpdir(), "blackboard-mcp-"));
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith("BLACKBOARD_"));
  server = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--data", join(data, "data"), "--log", "info"], {
    env: Object.fromEntries(environment),
    stdio: ["ignore", "pipe", "inherit"],
  });
  url = await new Promise((resolve, reject) => {
    server.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    createInterface({ input: server.stdout }).on("line", (line) => {
      const said = line.startsWith("{") ? JSON.parse(line) : {};
      if (said.message === "listening") resolve(said.url);
    });
  });
});

after(async () => {
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  await ended;
  rmSync(data, { recursive: true });
});

async function http(method, path, body) {
  const answer = await fetch(`${url}/v1/sessions/${path}`, {
    method,
    headers: { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
  return answer.json();
}

/** The facts of a tool's result, with those that stand between its marks. */
function facts(result) {
  const [own, , data = "{}"] = result.content[0].text.split("\n");
  return { ...JSON.parse(own), ...JSON.parse(data) };
}

/** Returns once this many calls wait. */
async function watchers(count) {
  for (;;) {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    if (metrics.includes(`\nblackboard_watchers ${count}\n`)) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const older = {
  name: "sdk 1",
  generation: "2025-11-25",
  client: () => new OlderClient(about),
  transport: (address) => new OlderTransport(address),
  call: (client, params, options) => client.callTool(params, undefined, options),
};
const newer = (name, mode, generation) => ({
  name,
  generation,
  client: () => new recent.Client(about, { versionNegotiation: { mode } }),
  transport: (address) => new recent.StreamableHTTPClientTransport(address),
  call: (client, params, options) => client.callTool(params, options),
});

const all = [older, newer("client 2", "auto", "2026-07-28"), newer("client 2, legacy", "legacy", "2025-11-25")];
let numbers = 0;

for (const kind of all) {
  describe(kind.name, { concurrency: false }, () => {
    /** Connects with a session of its own. */
    async function connected(run) {
      const session = `typescript-${++numbers}`;
      await http("POST", `${session}/requests`, [{ request: "sum up report.pdf", kind: "sum" }]);
      const client = kind.client();
      await client.connect(kind.transport(new URL(`${url}/mcp?session=${session}&agent=Worker`)));
      const call = (name, args = {}, options = undefined) => kind.call(client, { name, arguments: args }, options);
      try {
        await run({ client, call, session });
      } finally {
        await client.close();
      }
    }

    test("connects and lists", limit, () =>
      connected(async ({ client }) => {
        assert.match(client.getInstructions(), /board_overview/);
        assert.equal((await client.listTools()).tools.length, 25);
        const { resources } = await client.listResources();
        assert.equal(resources.length, 9);
        for (const { uri } of resources.filter(({ uri }) => !uri.endsWith("/memory"))) {
          assert.ok((await client.readResource({ uri })).contents[0].text !== undefined, uri);
        }
        assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 11);
        assert.equal((await client.listPrompts()).prompts.length, 3);
      }),
    );

    test("works on a request", limit, () =>
      connected(async ({ client, call, session }) => {
        assert.match((await call("board_overview")).content[0].text, /sum up report.pdf/);
        const claimed = facts(await call("claim_request", { match: { kind: "sum" } }));
        assert.equal(claimed.claimed, true);
        await call("append_items", { log: "trajectories", items: [{ step: 1, text: "read it" }] });
        await call("remember", { item: "the report has 12 pages" });
        assert.match((await call("recall", { contains: "pages" })).content[0].text, /12 pages/);
        await call("set_state", { path: "report/pages", value: 12 });
        assert.match((await call("get_state", { path: "report" })).content[0].text, /"pages":12/);
        const done = facts(await call("finish_request", { seq: 1, fence: claimed.fence, result: { pages: 12 } }));
        assert.equal(done.done, true);
        const page = await http("GET", `${session}/requests`);
        assert.deepEqual(page.entries[0].done.result, { pages: 12 });
        const prompt = await client.getPrompt({ name: "brief_me", arguments: {} });
        assert.match(prompt.messages[0].content.text, /read it/);
        const ref = { type: "ref/resource", uri: "blackboard://{session}/state/{+path}" };
        const completed = await client.complete({ ref, argument: { name: "path", value: "rep" } });
        assert.deepEqual(completed.completion.values, ["report"]);
      }),
    );

    test("reads an error", limit, () =>
      connected(async ({ client, call }) => {
        const result = await call("read_log", { session: "no-such-session", log: "questions" });
        assert.equal(result.isError, true);
        assert.equal(facts(result).error, "session-not-found");
        assert.ok(facts(result).next);
        await assert.rejects(call("no_such_tool"), /-32602|no tool is named/);
        await assert.rejects(client.readResource({ uri: "blackboard://no-such-session/prompt" }));
      }),
    );

    test("gets an image", limit, () =>
      connected(async ({ client, call, session }) => {
        await call("add_screenshot", { image: `data:image/png;base64,${pixel}`, metadata: "one pixel" });
        const { content } = await call("get_screenshot");
        const image = content.find(({ type }) => type === "image");
        assert.deepEqual([image.mimeType, image.data], ["image/png", pixel]);
        const read = await client.readResource({ uri: `blackboard://${session}/screenshots/1` });
        assert.deepEqual([read.contents[0].mimeType, read.contents[0].blob], ["image/png", pixel]);
      }),
    );

    test("waits and is woken", limit, () =>
      connected(async ({ call, session }) => {
        const changed = call("wait_for_change", { on: ["trajectories"], wait_s: 50 });
        await watchers(1);
        await http("POST", `${session}/trajectories`, [{ step: 1, text: "by fetch" }]);
        assert.match((await changed).content[0].text, /by fetch/);

        const answered = call("ask_person", { question: "Which file?", wait_s: 50 });
        await watchers(1);
        await http("PUT", `${session}/questions/1/answer`, { answer: "a.xlsx" });
        assert.equal(facts(await answered).answer, "a.xlsx");

        const claimed = call("claim_request", { match: { kind: "new" }, wait_s: 50 });
        await watchers(1);
        await http("POST", `${session}/requests`, [{ kind: "new" }]);
        assert.equal(facts(await claimed).seq, 2);
      }),
    );

    test("hears of progress", limit, () =>
      connected(async ({ call, session }) => {
        let heard;
        const first = new Promise((resolve) => (heard = resolve));
        const options = { onprogress: heard, timeout: 60_000, resetTimeoutOnProgress: true };
        const changed = call("wait_for_change", { wait_s: 50 }, options);
        assert.ok((await first).progress > 0);
        await http("POST", `${session}/trajectories`, [{ step: 1, text: "at last" }]);
        assert.match((await changed).content[0].text, /at last/);
      }),
    );

    test("leaves, and claims nothing more", limit, () =>
      connected(async ({ call, session }) => {
        const leaving = new AbortController();
        const options = { signal: leaving.signal };
        const gone = call("claim_request", { match: { kind: "late" }, wait_s: 50 }, options);
        await watchers(1);
        leaving.abort();
        await assert.rejects(gone);
        if (kind.generation === "2025-11-25") return; // These keep the connection, and the server the wait.
        await watchers(0);
        await http("POST", `${session}/requests`, [{ kind: "late" }]);
        assert.equal((await http("GET", `${session}/requests`)).entries[1].claim, undefined);
      }),
    );
  });
}

test("a newer client asks its own user", limit, async () => {
  const session = `typescript-${++numbers}`;
  const client = new recent.Client(about, {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: "auto" },
  });
  client.setRequestHandler("elicitation/create", (request) => {
    assert.equal(request.params.message, "Which file?");
    return { action: "accept", content: { answer: "a.xlsx" } };
  });
  await client.connect(new recent.StreamableHTTPClientTransport(new URL(`${url}/mcp?session=${session}&agent=Worker`)));
  const result = await client.callTool({ name: "ask_person", arguments: { question: "Which file?", ask_here: true } });
  assert.equal(facts(result).answer, "a.xlsx");
  await client.close();
});

for (const [part, body] of [
  ["questions", { question: "new?" }],
  ["agents/Worker/attention", undefined],
]) {
  test(`a newer client follows ${part}`, limit, async () => {
    const session = `typescript-${++numbers}`;
    await http("POST", `${session}/requests`, [{ request: "first" }]);
    const client = new recent.Client(about, { versionNegotiation: { mode: "auto" } });
    await client.connect(new recent.StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    const uri = `blackboard://${session}/${part}`;
    const told = new Promise((resolve) =>
      client.setNotificationHandler("notifications/resources/updated", ({ params }) => resolve(params.uri)),
    );
    const subscription = await client.listen({ resourceSubscriptions: [uri] });
    await watchers(1);
    await http("POST", body ? `${session}/${part}` : `${session}/agents/Worker/messages`, [body ?? "wake up"]);
    assert.equal(await told, uri);
    await subscription.close();
    await watchers(0);
    await client.close();
  });
}
