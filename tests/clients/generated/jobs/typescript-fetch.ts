// Client by openapi-generator (typescript-fetch): a class for each tag, whose methods throw unless the status is 2xx.

import { Configuration, EventsApi, QuestionsApi, ResponseError, StateApi, TrajectoriesApi } from "../typescript-fetch";
import { PATH, SERVER, follow, report } from "./job";

const configuration = new Configuration({ basePath: SERVER });
const trajectories = new TrajectoriesApi(configuration);
const questions = new QuestionsApi(configuration);
const state = new StateApi(configuration);
const events = new EventsApi(configuration);

await report("typescript-fetch", async (session) => {
  const one = await trajectories.appendToTrajectories({ session, body: { step: 1, note: { deep: [true] } } });
  const many = await trajectories.appendToTrajectories({ session, body: [{ step: 2 }, "three"] });
  const page = await trajectories.getTrajectories({ session });

  const path = PATH;
  await state.putState({ session, path, body: { pages: 1 } });
  const ifMatch = (await state.getStateRaw({ session, path })).raw.headers.get("Blackboard-ETag") ?? "";
  await state.putState({ session, path, ifMatch, body: { pages: 2 } });
  const late = await state.putState({ session, path, ifMatch, body: { pages: 3 } }).catch((error: unknown) => error);
  const refused = late instanceof ResponseError ? late.response : undefined;

  const asked = await questions.appendToQuestions({ session, body: { question: "Which printer?" } });
  const seq = asked.entries?.[0]?.seq ?? 0;
  await questions.answerQuestion({ session, seq, newAnswerBody: { answer: "The one on floor 3" } });
  const question = await questions.getQuestion({ session, seq });

  // Without this header the answer is a stream, which ends only with the connection.
  const headers = { Accept: "application/json" };
  const read = (after: number) => events.followSession({ session, after, wait: "10s" }, { headers });
  return {
    seqs: [...(one.entries ?? []), ...(many.entries ?? [])].map((entry) => entry.seq),
    items: page.entries.map((entry) => entry.item),
    late: [refused?.status, (await refused?.json()).code],
    value: await state.getState({ session, path }),
    answer: question.item["answer"],
    revisions: await follow(read),
  };
});
