// A LangGraph graph on a board: its questions are answered on the page, and its steps are looked at there.
//
// PYTHON names an interpreter that has the Python client and LangGraph.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, board } from "./harness.mjs";

const PYTHON = process.env.PYTHON ?? "../../target/venv-page/bin/python";
const EXAMPLE = new URL("../../examples/langgraph_mail.py", import.meta.url).pathname;

/** A process that runs the example's graph. */
function worker(server, thread) {
  const child = spawn(PYTHON, [EXAMPLE, thread], { env: { ...process.env, BLACKBOARD_URL: server.url }, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (bytes) => (said += bytes));
  return { child, ended: once(child, "close").then(([code]) => ({ code, said })) };
}

async function answer(page, question, choice) {
  const card = page.getByRole("article", { name: question });
  await card.getByRole("button", { name: choice, exact: true }).click();
  await card.waitFor({ state: "detached" });
}

describe("a killed graph goes on from an answer on the page", async (t) => {
  const { server, page } = t;
  const session = "langgraph:killed";
  const first = worker(server, "killed");
  await t.go(`#/questions?session=${encodeURIComponent(session)}`);
  await page.getByRole("article", { name: "Tea at four?” to Ann?" }).waitFor();
  first.child.kill("SIGKILL");
  assert.equal((await first.ended).code, null);
  // Nobody runs the graph while the question is answered.
  await answer(page, "Tea at four?” to Ann?", "yes");
  const second = worker(server, "killed");
  await answer(page, "Tea at four?” to Ben?", "no");
  await answer(page, "Tea at four?” to Cem?", "yes");
  const { code, said } = await second.ended;
  assert.deepEqual([code, said.trim().split("\n").at(-1)], [0, "Sent to: Ann, Cem"]);

  const { body } = await server.get(board(session, "questions"));
  assert.deepEqual(body.entries.map(({ item }) => item.answer), ["yes", "no", "yes"]);
  await t.go(`#/sessions/${encodeURIComponent(session)}/timeline`);
  await page.getByText("I would write to Cem.").first().waitFor();
  await t.go(`#/sessions/${encodeURIComponent(session)}/state`);
  await page.getByText("langgraph", { exact: true }).first().waitFor();
  await t.go("#/sessions");
  await page.getByText(/\d+ steps?/).first().waitFor();
  if (process.env.PICTURES) {
    for (const view of ["timeline", "state"]) {
      await t.go(`#/sessions/${encodeURIComponent(session)}/${view}`);
      await page.waitForTimeout(1_000);
      await page.screenshot({ path: `${process.env.PICTURES}/langgraph-${view}.png` });
    }
  }
});
