// Client by @hey-api/openapi-ts: functions that return data, error and response.

import * as board from "../hey-api/sdk.gen";
import { client } from "../hey-api/client.gen";
import type { ProblemBody } from "../hey-api/types.gen";
import { PATH, SERVER, follow, report } from "./job";

client.setConfig({ baseUrl: SERVER });

await report("hey-api", async (session) => {
  const path = { session };
  const one = await board.appendToTrajectories({ path, body: { step: 1, note: { deep: [true] } } });
  const many = await board.appendToTrajectories({ path, body: [{ step: 2 }, "three"] });
  const page = await board.getTrajectories({ path });

  const value = { session, path: PATH };
  await board.putState({ path: value, body: { pages: 1 } });
  const tag = (await board.getState({ path: value })).response?.headers.get("Blackboard-ETag") ?? "";
  await board.putState({ path: value, body: { pages: 2 }, headers: { "If-Match": tag } });
  const late = await board.putState({ path: value, body: { pages: 3 }, headers: { "If-Match": tag } });

  const asked = await board.appendToQuestions({ path, body: { question: "Which printer?" } });
  const seq = asked.data?.entries?.[0]?.seq ?? 0;
  await board.answerQuestion({ path: { session, seq }, body: { answer: "The one on floor 3" } });
  const question = await board.getQuestion({ path: { session, seq } });

  // Without this header the answer is a stream, which ends only with the connection.
  const headers = { Accept: "application/json" };
  const read = async (after: number) =>
    (await board.followSession({ path, query: { after, wait: "10s" }, headers })).data;
  return {
    seqs: [...(one.data?.entries ?? []), ...(many.data?.entries ?? [])].map((entry) => entry.seq),
    items: (page.data?.entries ?? []).map((entry) => entry.item),
    late: [late.response?.status, (late.error as ProblemBody).code],
    value: (await board.getState({ path: value })).data,
    answer: question.data?.item["answer"],
    revisions: await follow(read),
  };
});
