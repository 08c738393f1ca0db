// Agents: moves of the server's state machine, directives as requested and as obeyed, memory and costs.

import assert from "node:assert/strict";
import { describe, board } from "./harness.mjs";

const OWN = {
  DELEGATE_TO_APP: { from: ["CONTINUE"], to: ["CONTINUE"] },
  ASSIGN: { from: ["PENDING", "DELEGATE_TO_APP"], to: ["FAIL"] },
};

const detail = (page, agent) => page.getByRole("region", { name: agent, exact: true });

async function statusOf(server, session, agent) {
  return (await server.get(board(session, "agents", agent))).body.status;
}

/** Sends a change of status; returns the answer's HTTP status. */
async function moved({ url }, session, agent, status) {
  const answer = await fetch(`${url}${board(session, "agents", agent)}`, {
    method: "PATCH",
    headers: { "Content-Type": "application/merge-patch+json" },
    body: JSON.stringify({ status }),
  });
  await answer.text();
  return answer.status;
}

describe("the page's moves between statuses are the server's", async (t) => {
  const session = "agents-moves";
  await t.server.put(board(session), { settings: { agent_states: OWN } });
  await t.go(`#/sessions/${session}/agents`);
  const table = await t.page.evaluate(async (states) => {
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name).find((name) => name.endsWith("/core/statuses.js"));
    const { nextOf, statuses } = await import(loaded);
    return statuses(states).map((from) => [from, nextOf(from, states), statuses(states)]);
  }, OWN);
  assert.equal(table.length, 9);
  for (const [from, next, all] of table) {
    for (const to of all) {
      const agent = `${from}-${to}`;
      await t.server.put(board(session, "agents", agent), { status: from });
      const expected = next.includes(to) || from === to ? 200 : 409;
      assert.equal(await moved(t.server, session, agent, to), expected, `${from} to ${to}`);
    }
  }
});

describe("only legal moves are offered, and a move is told live with its author", async (t) => {
  const session = "agents-status";
  await t.server.put(board(session), { settings: { agent_states: OWN } });
  await t.server.put(board(session, "agents", "AppAgent"), { status: "CONTINUE", type: "AppAgent", platform: "linux" }, { "X-Agent-ID": "AppAgent" });
  await t.server.patch(board(session, "agents", "AppAgent"), { status: "CONFIRM" }, { "X-Agent-ID": "HostAgent" });
  await t.go(`#/sessions/${session}/agents?agent=AppAgent`);
  const one = detail(t.page, "AppAgent");
  const moves = one.getByRole("group", { name: "Change the status by hand" });
  await moves.getByRole("button", { name: "Set the status to FAIL" }).waitFor();
  assert.deepEqual(await moves.getByRole("button").allInnerTexts(), ["CONTINUE", "FAIL"]);
  await one.getByRole("img", { name: "Status CONFIRM. Next may be CONTINUE, FAIL." }).waitFor();
  const way = one.getByRole("table", { name: "Last changes of status" });
  await way.getByText("HostAgent").waitFor();
  await moves.getByRole("button", { name: "Set the status to FAIL" }).click();
  await one.getByRole("img", { name: "Status FAIL. Next may be CONTINUE." }).waitFor();
  assert.equal(await statusOf(t.server, session, "AppAgent"), "FAIL");
  await t.server.patch(board(session, "agents", "AppAgent"), { status: "CONTINUE" }, { "X-Agent-ID": "CriticAgent" });
  await way.getByText("CriticAgent").waitFor();
  await moves.getByRole("button", { name: "Set the status to DELEGATE_TO_APP" }).waitFor();
});

describe("a pause is shown as asked for and as obeyed", async (t) => {
  const session = "agents-pause";
  const agent = "Device~1 é";
  await t.server.put(board(session, "agents", agent), { status: "CONTINUE" }, { "X-Agent-ID": encodeURIComponent(agent) });
  await t.go(`#/sessions/${session}/agents?agent=${encodeURIComponent(agent)}`);
  const one = detail(t.page, agent);
  const line = one.getByRole("row", { name: "Pause" });
  await line.getByText("Not paused").waitFor();
  await one.getByRole("button", { name: "Pause", exact: true }).click();
  await line.getByText("not yet").waitFor();
  const path = board(session, "state", "agents", "Device~01 é", "paused");
  assert.equal((await t.server.get(path)).body, true);
  await t.server.post(board(session, "trajectories"), { step: 1 }, { "X-Agent-ID": encodeURIComponent(agent) });
  await one.getByText("The agent has written since.").waitFor();
  await t.server.patch(board(session, "agents", agent), { status: "PENDING", paused: true });
  await line.getByText("Paused", { exact: true }).waitFor();
  await one.getByRole("button", { name: "Resume" }).click();
  await line.getByText("about to go on").waitFor();
  await t.server.patch(board(session, "agents", agent), { status: "CONTINUE", paused: null });
  await line.getByText("Not paused").waitFor();
  await one.getByRole("button", { name: "Stop" }).click();
  await one.getByRole("row", { name: "Stop" }).getByText("not yet").waitFor();
  assert.equal((await t.server.get(board(session, "state", "agents", "Device~01 é", "stopped"))).body, true);
  // As the command line or the directive's time does it.
  await t.server.del(board(session, "state", "agents", "Device~01 é", "stopped"));
  await one.getByRole("button", { name: "Stop", exact: true }).waitFor();
});

describe("a read that fails withdraws no pause, and a large value is read by itself", async (t) => {
  const session = "agents-failing";
  const path = board(session, "state", "agents", "AppAgent");
  await t.server.put(board(session, "agents", "AppAgent"), { status: "CONTINUE" });
  await t.server.put(path, { paused: true });
  await t.go(`#/sessions/${session}/agents?agent=AppAgent`);
  const one = detail(t.page, "AppAgent");
  const line = one.getByRole("row", { name: "Pause" });
  await line.getByText("not yet").waitFor();
  await t.page.locator(".live.live").waitFor();
  await t.page.route(`**${path}?*`, (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify({ status: 503, code: "overloaded", title: "Overloaded" }) }));
  const failed = t.page.waitForResponse((answer) => answer.status() === 503);
  await t.server.put(board(session, "state", "other"), 1);
  await failed;
  await t.server.patch(board(session, "agents", "AppAgent"), { paused: true });
  await line.getByText("Paused", { exact: true }).waitFor();
  await one.getByRole("button", { name: "Resume" }).waitFor();
  assert.equal(await line.getByText("about to go on").count(), 0);
  await t.page.unroute(`**${path}?*`);
  await t.server.put(path, { stopped: true, why: "x".repeat(70_000) });
  await one.getByRole("row", { name: "Stop" }).getByText("not yet").waitFor();
  await line.getByText("about to go on").waitFor();
});

describe("an agent's view asks for nothing that is not there, and long names are whole", async (t) => {
  const session = "agents-quiet";
  const name = "SpreadsheetCheckingAgent";
  await t.server.post(board(session, "agents", name, "memory"), [{ step: 1, thought: "seen" }]);
  await t.server.post(board(session, "trajectories"), { step: 1, thought: "seen", duration: 2 }, { "X-Agent-ID": name });
  const failed = [];
  t.page.on("response", (response) => response.status() >= 400 && failed.push(`${response.status()} ${response.url()}`));
  await t.go(`#/sessions/${session}/agents?agent=${name}`);
  await detail(t.page, name).getByText("Nothing", { exact: true }).first().waitFor();
  await t.page.locator(".live.live").waitFor();
  await detail(t.page, name).getByRole("button", { name: "Pause" }).click();
  await detail(t.page, name).locator(".badge.asked").first().waitFor();
  assert.deepEqual(failed.filter((one) => !one.startsWith("412 ")), []);
  for (const [width, view, place] of [[1280, "agents", ".agent-row"], [1280, `agents?agent=${name}`, ".agent-row"], [400, "agents", ".agent-row"], [1280, "tasks", ".task-row"], [1280, "timeline", ".overview-row"]]) {
    if (view === "tasks") await t.server.post(board(session, "requests"), { request: "Go" }, { "X-Agent-ID": name });
    await t.page.setViewportSize({ width, height: 800 });
    await t.go(`#/sessions/${session}/${view}`);
    const shown = t.page.locator(`${place} .agent .truncate`).filter({ hasText: name }).first();
    await shown.waitFor();
    assert.ok(await shown.evaluate((one) => one.scrollWidth <= one.clientWidth), `${view} at ${width} px cuts the name`);
  }
});

describe("memory comes the latest first, page by page, with its costs", async (t) => {
  const session = "agents-memory";
  await t.server.put(board(session), { settings: { cost_max: 2 } });
  const steps = Array.from({ length: 70 }, (_, step) => ({ step, thought: `thought ${step}`, action: `click(${step})`, status: "CONTINUE", cost: 0.01 }));
  await t.server.post(board(session, "agents", "AppAgent", "memory"), steps);
  await t.go(`#/sessions/${session}/agents?agent=AppAgent`);
  const memory = t.page.getByRole("region", { name: "Memory" });
  await memory.getByText("thought 69").waitFor();
  assert.match(await t.text(memory.getByRole("listitem").first()), /^Step 69/);
  const budget = t.page.getByRole("meter", { name: "Budget of the session" });
  assert.equal(await budget.getAttribute("aria-valuetext"), "$0.70 of $2.00");
  await t.page.getByRole("img", { name: /^Cost of 70 steps/ }).waitFor();
  await t.server.post(board(session, "agents", "AppAgent", "memory"), { step: 70, thought: "thought 70 <b>", cost: 0.02 });
  await memory.getByText("thought 70 <b>").waitFor();
  await memory.getByRole("link", { name: "Older steps" }).click();
  await memory.getByText("thought 40").waitFor();
  assert.match(t.page.url(), /before=42/);
  await memory.getByRole("link", { name: /Step 40/ }).click();
  await t.page.getByRole("complementary", { name: "agents/AppAgent/memory/41" }).waitFor();
});

describe("an agent is registered and removed", async (t) => {
  const session = "agents-register";
  await t.server.put(board(session), {});
  await t.go(`#/sessions/${session}/agents`);
  await t.page.getByRole("heading", { name: "No agent is registered" }).waitFor();
  await t.page.getByRole("button", { name: "Register" }).click();
  const dialog = t.page.getByRole("dialog", { name: "Register an agent" });
  await dialog.getByLabel("Name").fill("LinuxAgent");
  await dialog.getByLabel("Platform (optional)").fill("linux");
  await dialog.getByRole("button", { name: "Register" }).click();
  await detail(t.page, "LinuxAgent").getByText("linux", { exact: true }).waitFor();
  assert.equal((await t.server.get(board(session, "agents", "LinuxAgent"))).body.platform, "linux");
  await t.page.getByRole("button", { name: "Remove the agent" }).click();
  await t.page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await t.page.getByRole("heading", { name: "No agent is registered" }).waitFor();
});

describe("another agent's memory is refused calmly, and a reader sees no button that writes", async (t) => {
  const session = "agents-rights";
  await t.server.post(board(session, "agents", "AppAgent", "memory"), { step: 1, thought: "secret", cost: 0.5 });
  const problem = { type: "urn:blackboard:problem:forbidden", title: "Forbidden", status: 403, code: "forbidden", detail: "the token may not read memories" };
  await t.page.route("**/agents/AppAgent/memory**", (route) => route.fulfill({ status: 403, contentType: "application/problem+json", body: JSON.stringify(problem) }));
  await t.page.route("**/ui/session", (route) => route.fulfill({ json: { tokens_required: true, login: { token: { name: "reader", scopes: ["read"] } } } }));
  await t.go(`#/sessions/${session}/agents?agent=AppAgent`);
  const one = detail(t.page, "AppAgent");
  await one.getByText("The memory of an agent is its own.").waitFor();
  await one.getByText("The costs of another agent need the right memory:read.").waitFor();
  assert.equal(await t.page.getByRole("alert").count(), 0);
  for (const name of ["Register", "Pause", "Stop", "Remove the agent", /^Set the status/]) {
    assert.equal(await t.page.getByRole("button", { name, exact: true }).count(), 0, String(name));
  }
});
