// Client by openapi-fetch with types by openapi-typescript: methods that return data, error and response.

import createClient from "openapi-fetch";
import type { paths } from "../schema";
import { PATH, SERVER, follow, report } from "./job";

// Answers as JSON; without this type they may be lines as well.
const board = createClient<paths, "application/json" | "application/problem+json">({ baseUrl: SERVER });

await report("openapi-fetch", async (session) => {
  const log = "/v1/sessions/{session}/trajectories";
  const params = { path: { session } };
  const one = await board.POST(log, { params, body: { step: 1, note: { deep: [true] } } });
  const many = await board.POST(log, { params, body: [{ step: 2 }, "three"] });
  const page = await board.GET(log, { params });

  const at = "/v1/sessions/{session}/state/{path}";
  const path = { session, path: PATH };
  await board.PUT(at, { params: { path }, body: { pages: 1 } });
  const tag = (await board.GET(at, { params: { path } })).response.headers.get("Blackboard-ETag") ?? "";
  const header = { "If-Match": tag };
  await board.PUT(at, { params: { path, header }, body: { pages: 2 } });
  const late = await board.PUT(at, { params: { path, header }, body: { pages: 3 } });

  const asked = await board.POST("/v1/sessions/{session}/questions", { params, body: { question: "Which printer?" } });
  const asking = { path: { session, seq: asked.data?.entries?.[0]?.seq ?? 0 } };
  const answer = { answer: "The one on floor 3" };
  await board.PUT("/v1/sessions/{session}/questions/{seq}/answer", { params: asking, body: answer });
  const question = await board.GET("/v1/sessions/{session}/questions/{seq}", { params: asking });

  // Without this header the answer is a stream, which ends only with the connection.
  const headers = { Accept: "application/json" };
  const read = async (after: number) => {
    const query = { after, wait: "10s" };
    return (await board.GET("/v1/sessions/{session}/events", { params: { ...params, query }, headers })).data;
  };
  return {
    seqs: [...(one.data?.entries ?? []), ...(many.data?.entries ?? [])].map((entry) => entry.seq),
    items: (page.data?.entries ?? []).map((entry) => entry.item),
    late: [late.response.status, late.error?.code],
    value: (await board.GET(at, { params: { path } })).data,
    answer: question.data?.item["answer"],
    revisions: await follow(read),
  };
});

// More of what the document says of parameters and headers.
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
