// Client by openapi-typescript-codegen: static methods that return the body alone, and throw unless the status is 2xx.

import { ApiError, EventsService, OpenAPI, QuestionsService, StateService, TrajectoriesService } from "../openapi-typescript-codegen";
import { PATH, SERVER, follow, report } from "./job";

OpenAPI.BASE = SERVER;

await report("openapi-typescript-codegen", async (session) => {
  const one = await TrajectoriesService.appendToTrajectories(session, { step: 1, note: { deep: [true] } });
  const many = await TrajectoriesService.appendToTrajectories(session, [{ step: 2 }, "three"]);
  const page = await TrajectoriesService.getTrajectories(session);

  // It shows no headers of answers, so the tag is that of the last write's body.
  const { etag } = await StateService.putState(session, PATH, { pages: 1 });
  await StateService.putState(session, PATH, { pages: 2 }, undefined, etag);
  const late = await StateService.putState(session, PATH, { pages: 3 }, undefined, etag).catch((error: unknown) => error);

  const asked = await QuestionsService.appendToQuestions(session, { question: "Which printer?" });
  const seq = asked.entries?.[0]?.seq ?? 0;
  await QuestionsService.answerQuestion(session, seq, { answer: "The one on floor 3" });
  const question = await QuestionsService.getQuestion(session, seq);

  const none = undefined;
  const read = (after: number) => EventsService.followSession(session, after, none, none, none, none, none, "10s");
  return {
    seqs: [...(one.entries ?? []), ...(many.entries ?? [])].map((entry) => entry.seq),
    items: page.entries.map((entry) => entry.item),
    late: late instanceof ApiError ? [late.status, late.body.code] : [undefined, undefined],
    value: await StateService.getState(session, PATH),
    answer: question.item["answer"],
    revisions: await follow(read),
  };
});
