/** Types of calls, checked by the compiler alone. */

import type { Client } from "agent-blackboard";

export async function check(client: Client): Promise<unknown[]> {
  const path = { session: "types", path: "a", sha256: "", seq: 1 };
  const { data } = await client.GET("/v1/sessions/{session}", { params: { path } });
  const revision: number = data.revision;
  // @ts-expect-error there is no such member
  void data.nothing;
  // @ts-expect-error a path parameter is missing
  await client.GET("/v1/sessions/{session}");
  // @ts-expect-error a name is a text
  await client.GET("/v1/sessions/{session}", { params: { path: { session: 1 } } });
  // @ts-expect-error there is no such route
  await client.GET("/v1/session/{session}", { params: { path } });
  // @ts-expect-error the route has no such method
  await client.POST("/v1/sessions/{session}", { params: { path } });
  // @ts-expect-error the route has no such parameter
  await client.GET("/v1/sessions/{session}/trajectories", { params: { path, query: { stepz: ["1"] } } });
  // @ts-expect-error there is no such option
  await client.GET("/v1/sessions/{session}/trajectories", { params: { path }, parseaS: "text" });
  // @ts-expect-error an answer of a question is an answer or a skip
  await client.PUT("/v1/sessions/{session}/questions/{seq}/answer", { params: { path }, body: { reply: "" } });

  const claimed = await client.POST("/v1/sessions/{session}/requests/claim", { params: { path }, body: {} });
  // @ts-expect-error there may be none
  void claimed.data.seq;
  const gone = await client.GET("/v1/sessions/{session}", { params: { path, query: { until: "absent" } } });
  // @ts-expect-error it is absent
  void gone.data.revision;

  const query = { format: "markdown" as const };
  const prompt = await client.GET("/v1/sessions/{session}/prompt", { params: { path, query }, parseAs: "text" });
  const text: string = prompt.data;
  const blob = await client.GET("/v1/sessions/{session}/blobs/{sha256}", { params: { path }, parseAs: "arrayBuffer" });
  const bytes: ArrayBuffer = blob.data;
  const page = await client.GET("/v1/sessions/{session}/events", { params: { path } });
  const next: number = page.data.next;
  for await (const event of client.events("types")) {
    void event.changes;
    break;
  }
  for await (const event of client.events("types", { onGap: "resync" })) {
    // @ts-expect-error a gap has no changes
    void event.changes;
    if (event.type === "commit") void event.changes;
    break;
  }
  const updated = await client.updateState<number>("types", "n", (n = 0) => n + 1);
  const value: number = updated.value;
  return [revision, text, bytes, next, value];
}
