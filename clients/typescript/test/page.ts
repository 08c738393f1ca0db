/** Client in a page: bundled, loaded by a browser, and called by `browser.test.ts`. */

import { createClient, Problem } from "agent-blackboard";
import type { BoardEvent } from "agent-blackboard";

declare global {
  /** Kills the server and starts it again; from the test. */
  function restart(): Promise<void>;
  /** Calls of the test. */
  var page: { tour: typeof tour; follow: typeof follow; refusal: typeof refusal };
}

const session = "page";
const params = { path: { session } };

/** Uses each part of the client once. */
async function tour(url: string, token: string) {
  const client = createClient({ url, token, agent: "Päge" });
  const appended = await client.POST("/v1/sessions/{session}/trajectories", { params, body: { step: 1 } });
  const prompt = await client.GET("/v1/sessions/{session}/prompt", { params });
  const bytes = new Uint8Array([1, 2, 3]);
  const headers = { "Content-Type": "application/x-thing" };
  const blob = await client.POST("/v1/sessions/{session}/blobs", { params, body: bytes, headers });
  const place = { session, sha256: blob.data.sha256 };
  const read = await client.GET("/v1/sessions/{session}/blobs/{sha256}", {
    params: { path: place },
    parseAs: "arrayBuffer",
  });

  const asked = client.ask(session, "Which printer?");
  const { entries } = await client.waitFor.entries(session, "questions");
  const seq = entries[0]?.seq ?? 0;
  const answer = { params: { path: { session, seq } }, body: { answer: "floor 3" } };
  await client.PUT("/v1/sessions/{session}/questions/{seq}/answer", answer);

  await client.POST("/v1/sessions/{session}/requests", { params, body: { job: "count" } });
  const worked = await client.claimNext(session, { match: { job: "count" } }, () => 3);
  const add = async () => {
    for (let n = 0; n < 5; n += 1) await client.updateState<number>(session, "count", (count = 0) => count + 1);
  };
  await Promise.all([add(), add(), add()]);
  const stale = { params: { path: { session, path: "count" }, header: { "If-Match": '"0.0"' } }, body: 0 };
  const refused = await client.PUT("/v1/sessions/{session}/state/{path}", stale).catch((error: unknown) => error);
  return {
    revision: Number(appended.response.headers.get("Blackboard-Revision")),
    agent: (await client.waitFor.entries(session, "trajectories")).entries[0]?.agent,
    parts: prompt.data.length,
    bytes: [...new Uint8Array(read.data)],
    answer: (await asked).answer,
    worked: worked?.outcome,
    current: refused instanceof Problem ? [refused.code, refused.current, refused.etag !== undefined] : String(refused),
  };
}

/** Follows 20 commits, over a server that is killed after ten of them, and returns their numbers. */
async function follow(url: string, token: string) {
  const client = createClient({ url, token });
  const { data } = await client.GET("/v1/sessions/{session}", { params });
  const found: unknown[] = [];
  const followed = (async () => {
    for await (const event of client.events(session, { after: data.revision })) {
      found.push(...numbersOf(event));
      if (found.length === 20) return;
    }
  })();
  for (let n = 0; n < 20; n += 1) {
    await client.POST("/v1/sessions/{session}/trajectories", { params, body: { n } });
    if (n === 9) await restart();
  }
  await followed;
  return found;
}

function numbersOf(event: BoardEvent): unknown[] {
  return event.changes.flatMap(({ entries }) => (entries ?? []).map(({ item }) => item["n"]));
}

/** Returns the error of a call that is given up after this time. */
async function refusal(url: string, token: string, timeoutMs: number) {
  const client = createClient({ url, token, timeoutMs });
  const error = await client.GET("/v1/sessions").catch((error: unknown) => error);
  return String(error);
}

globalThis.page = { tour, follow, refusal };
