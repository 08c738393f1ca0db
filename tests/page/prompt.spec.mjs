// View Prompt: formats, options in the address, tokens, live updates, differences.

import assert from "node:assert/strict";
import { describe, board } from "./harness.mjs";

const PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async function fill(t, session) {
  await t.server.post(board(session, "questions"), { question: "Which quarter?" });
  await t.server.post(board(session, "requests"), [{ request: "Sum the quarter" }, { request: "Write <script>alert(1)</script>" }]);
  await t.server.post(board(session, "trajectories"), Array.from({ length: 20 }, (_, step) => ({ step, thought: `The workbook is open at sheet ${step}` })));
  await t.server.post(board(session, "screenshots"), { metadata: "Excel", image_path: "", image_str: PIXEL });
  await t.server.put(board(session, "state", "plan"), { title: "Report" });
  await t.server.post(board(session, "agents", "ExcelAgent", "memory"), { step: 1, thought: "Sums are in B2" });
}

const part = (t, name) => t.page.getByRole("article", { name, exact: true });

describe("the prompt is shown by parts in every format", async (t) => {
  await fill(t, "formats");
  await t.go("#/sessions/formats/prompt");
  await part(t, "Request History").getByText("Write <script>alert(1)</script>").waitFor();
  await part(t, "Image").getByRole("img").waitFor();
  for (const format of ["Responses", "Anthropic", "Gemini"]) {
    await t.page.getByRole("tab", { name: format }).click();
    await t.page.waitForURL(new RegExp(`format=${format.toLowerCase()}`));
    await t.page.locator(".prompt-main[aria-busy=false]").waitFor();
    await part(t, "Step Trajectories Completed Previously").getByText("The workbook is open at sheet 19").waitFor();
    await part(t, "Image").scrollIntoViewIfNeeded();
    await t.page.waitForFunction(() => document.querySelector(".prompt-image")?.naturalWidth === 1);
  }
  await t.page.getByRole("tab", { name: "Markdown" }).click();
  await part(t, "Request History").getByText("- **request:** Sum the quarter").waitFor();
  await t.page.getByRole("tab", { name: "Parts" }).click();
  await t.page.getByRole("button", { name: "As sent" }).click();
  await part(t, "Questions & Answers").getByText('[Questions & Answers:]').waitFor();
});

describe("options are in the address and in the request", async (t) => {
  await fill(t, "options");
  await t.go("#/sessions/options/prompt");
  await part(t, "Request History").waitFor();
  await t.page.getByLabel("State", { exact: true }).check();
  await part(t, "State").getByText("Report").waitFor();
  await t.page.getByLabel("ExcelAgent").check();
  await part(t, "Memory of ExcelAgent").getByText("Sums are in B2").waitFor();
  await t.page.getByLabel("Requests", { exact: true }).uncheck();
  await part(t, "Request History").waitFor({ state: "detached" });
  assert.match(decodeURIComponent(t.page.url()), /include=questions,trajectories,screenshots,state,memory:ExcelAgent/);
  await t.page.getByLabel("Keys of steps and memories").fill("step");
  await t.page.getByLabel("Latest items").fill("2");
  await t.page.getByLabel("Latest items").press("Enter");
  await t.page.getByText("The workbook is open").first().waitFor({ state: "detached" });
  await t.page.getByLabel("Tokens as of").selectOption("anthropic");
  const asked = t.page.waitForRequest(/prompt\?.*tokenizer=anthropic&ascii=false/);
  await t.page.getByLabel("Characters").selectOption("false");
  await asked;
  await t.page.getByRole("button", { name: "Clear options" }).click();
  await part(t, "Request History").waitFor();
  assert.match(t.page.url(), /prompt$/);
});

describe("tokens are shared by section, and what a budget leaves out is told", async (t) => {
  await fill(t, "tokens");
  await t.go("#/sessions/tokens/prompt");
  await t.page.getByText(/\d tokens$/).waitFor();
  const legend = await t.page.locator(".shares-legend").innerText();
  for (const name of ["Request History", "Step Trajectories Completed Previously", "1 image"]) assert.ok(legend.includes(name), name);
  await t.page.getByLabel("Token budget").fill("120");
  await t.page.getByLabel("Token budget").press("Enter");
  await t.page.getByText(/items left out to stay within 120 tokens/).waitFor();
  await t.page.getByLabel("Token budget").fill("5");
  await t.page.getByLabel("Token budget").press("Enter");
  await t.page.getByRole("alert").getByText("The budget of 5 tokens is too small").waitFor();
  await t.page.getByRole("button", { name: /^Use \d+ tokens$/ }).click();
  await part(t, "Questions & Answers").waitFor();
});

describe("the prompt follows the session, unless it is paused", async (t) => {
  await fill(t, "follow");
  await t.go("#/sessions/follow/prompt");
  await part(t, "Request History").getByText("Sum the quarter").waitFor();
  await t.server.post(board("follow", "requests"), { request: "A new request" });
  await part(t, "Request History").getByText("A new request").waitFor();
  await t.page.getByRole("button", { name: "Pause" }).click();
  await t.server.post(board("follow", "requests"), { request: "A later request" });
  const { body } = await t.server.get(board("follow"));
  await t.page.locator(`.live[title="Revision ${body.revision}"]`).waitFor();
  assert.equal(await t.page.getByText("A later request").count(), 0);
  await t.page.getByRole("button", { name: "Go on" }).click();
  await t.page.getByText("A later request").waitFor();
});

describe("two revisions are compared by line", async (t) => {
  await fill(t, "compare");
  const { body } = await t.server.get(board("compare"));
  await t.server.put(board("compare", "requests", "1"), { request: "Sum the year" });
  await t.server.post(board("compare", "trajectories"), { step: 20, thought: "One more" });
  await t.go(`#/sessions/compare/prompt?from=${body.revision}`);
  const diff = t.page.getByRole("region", { name: "Difference" });
  await diff.getByText(`From ${body.revision} to revision ${body.revision + 2}`).waitFor();
  await diff.locator(".added", { hasText: '"request": "Sum the year"' }).waitFor();
  await diff.locator(".removed", { hasText: '"request": "Sum the quarter"' }).waitFor();
  await diff.locator(".added", { hasText: "One more" }).waitFor();
  await diff.getByText(/unchanged lines/).first().waitFor();
  assert.match(await t.text(diff.getByRole("status")), /\+5 −1 lines/);
  await diff.getByRole("button", { name: "Show the prompt itself" }).click();
  await part(t, "Request History").waitFor();
});

describe("a prompt of megabytes is cut until one asks for more", async (t) => {
  await t.server.post(board("huge", "trajectories"), Array.from({ length: 500 }, (_, step) => ({ step, thought: "A long thought. ".repeat(600) })));
  await t.go("#/sessions/huge/prompt");
  const steps = part(t, "Step Trajectories Completed Previously");
  await steps.getByRole("button", { name: /Show all 4\.\d MB/ }).waitFor();
  assert.ok((await steps.innerText()).length < 60_000);
  await steps.getByRole("button", { name: /more/ }).click();
  await steps.getByText("440 kB of").waitFor();
});
