// Client by orval for fetch: functions that return data and status, whatever the status is. Its configuration has the URL.

import * as board from "../orval/board";
import { PATH, follow, report } from "./job";

await report("orval", async (session) => {
  const one = await board.appendToTrajectories(session, { step: 1, note: { deep: [true] } });
  const many = await board.appendToTrajectories(session, [{ step: 2 }, "three"]);
  const page = await board.getTrajectories(session);

  await board.putState(session, PATH, { pages: 1 });
  const tag = (await board.getState(session, PATH)).headers.get("Blackboard-ETag") ?? "";
  await board.putState(session, PATH, { pages: 2 }, undefined, { "If-Match": tag });
  const late = await board.putState(session, PATH, { pages: 3 }, undefined, { "If-Match": tag });

  const asked = await board.appendToQuestions(session, { question: "Which printer?" });
  const seq = (asked.status === 201 && asked.data.entries?.[0]?.seq) || 0;
  await board.answerQuestion(session, seq, { answer: "The one on floor 3" });
  const question = await board.getQuestion(session, seq);

  // Without this header the answer is a stream, which ends only with the connection.
  const headers = { Accept: "application/json" };
  const read = async (after: number) => {
    const page = await board.followSession(session, { after, wait: "10s" }, undefined, { headers });
    return page.status === 200 ? page.data : undefined;
  };
  return {
    seqs: [one, many].flatMap((done) => (done.status === 201 ? (done.data.entries ?? []) : [])).map((entry) => entry.seq),
    items: page.status === 200 ? page.data.entries.map((entry) => entry.item) : [],
    late: [late.status, late.status === 412 ? late.data.code : undefined],
    value: (await board.getState(session, PATH)).data,
    answer: question.status === 200 ? question.data.item["answer"] : undefined,
    revisions: await follow(read),
  };
});
