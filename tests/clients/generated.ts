// Client generated from the document: types by openapi-typescript, requests by openapi-fetch.
//
//     node target/clients/generated.js http://127.0.0.1:8733

import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

declare const process: { argv: string[] };

const baseUrl = process.argv[2];
// Answers as JSON; without this type they may be lines as well.
const board = createClient<paths, "application/json" | "application/problem+json">({ baseUrl });
const session = "clients generated";

function same(found: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a} is not ${b}`);
}

// A path of the state is one parameter of the document, so its slash is encoded.
for (const [path, body] of [["tasks/t1", { n: 1 }], ["tasks/t1/a~1b", 2]] as const) {
  const put = await board.PUT("/v1/sessions/{session}/state/{path}", { params: { path: { session, path } }, body });
  same(put.response.status, 201, `PUT ${path}`);
}
const state = await board.GET("/v1/sessions/{session}/state", { params: { path: { session } } });
same(state.data, { tasks: { t1: { n: 1, "a/b": 2 } } }, "the state");

// Lists: repeated by this client, joined and encoded by others.
const steps = [{ step: 1, a: 1, b: 2, cost: 0 }, { step: 2, a: 1, b: 2 }, { step: 3, a: 1 }];
await board.POST("/v1/sessions/{session}/trajectories", { params: { path: { session } }, body: steps });
for (const explode of [true, false]) {
  const page = await board.GET("/v1/sessions/{session}/trajectories", {
    params: { path: { session }, query: { keys: ["step", "b"], steps: ["1", "3"] } },
    querySerializer: { array: { style: "form", explode } },
  });
  same(page.data?.entries.map((entry) => entry.item), [{ step: 1, b: 2 }, { step: 3 }], "the items");
}

// Ask and wait: the tag and Location of the answer are the question's.
const asked = await board.POST("/v1/sessions/{session}/questions", {
  params: { path: { session } },
  body: { question: "Which printer?" },
});
const seq = asked.data?.entries?.[0]?.seq ?? 0;
same(asked.response.headers.get("location"), `/v1/sessions/clients%20generated/questions/${seq}`, "Location");
const waited = board.GET("/v1/sessions/{session}/questions/{seq}", {
  params: { path: { session, seq }, query: { until: "answered", wait: "30s" } },
});
const answered = await board.PUT("/v1/sessions/{session}/questions/{seq}/answer", {
  params: { path: { session, seq } },
  body: { answer: "The one on floor 3" },
});
same(answered.response.status, 200, "the answer");
same((await waited).data?.item, { question: "Which printer?", answer: "The one on floor 3" }, "the question");

// The body's tag is for the next append.
const tag = asked.data?.etag ?? "";
const late = await board.POST("/v1/sessions/{session}/questions", {
  params: { path: { session }, header: { "If-Match": tag } },
  body: { question: "And which paper?" },
});
same(late.error?.code, "precondition-failed", "an append after a change");
console.log("openapi-fetch: state paths, lists, asking and waiting, tags");
