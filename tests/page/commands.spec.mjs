// Commands that the page prints: each is pasted into a shell and run.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFile, mkdir, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { board, Server, visit } from "./harness.mjs";

const BINARY = resolve(process.env.BLACKBOARD_BIN ?? "target/debug/blackboard");
const PICTURE = resolve(import.meta.dirname, "../corpus/images/rgba.png");

/** A shell beside a server, in a folder with a picture: returns what a command prints. */
async function shellOf(server) {
  const folder = join(server.data, "shell");
  await mkdir(folder);
  await Promise.all([symlink(BINARY, join(folder, "blackboard")), copyFile(PICTURE, join(folder, "window.png"))]);
  const env = { PATH: `${folder}:${process.env.PATH}`, BLACKBOARD_DATA: server.data };
  return (command) => execFileSync("sh", ["-c", command], { cwd: folder, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** The views of a session that print a command while they are empty, and what its output has. */
const VIEWS = ["timeline", "screenshots", "state", "agents", "tasks"];

test("a token is made by the command of the log-in page, and each command of the page runs", async () => {
  const server = await Server.start(["--require-token"]);
  const { page, go, context, wrong } = await visit({ of: server });
  try {
    const shell = await shellOf(server);
    await go("#/sessions");
    const token = shell(await page.locator(".login .codebox").innerText()).trim();
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("No sessions yet").waitFor();
    const admin = shell("blackboard token create --name owner --scopes admin").trim();
    const run = async (hash, printed, more = "") => {
      await go(hash);
      await page.getByText("Your token is read from BLACKBOARD_TOKEN").first().waitFor();
      const command = await page.locator(".codebox").first().innerText();
      assert.match(shell(`export BLACKBOARD_TOKEN=${token}; ${command}${more}`), printed, command);
    };
    await run("#/sessions", /watch .*\/ui\//, " --pace 0");
    for (const view of VIEWS) {
      const name = `Anna's (new) ${view}`;
      const session = `#/sessions/${encodeURIComponent(name)}`;
      await server.put(board(name), {}, { Authorization: `Bearer ${token}` });
      // The timeline of a purged session does not begin with its creation.
      await server.post(board(name, "purge"), undefined, { Authorization: `Bearer ${admin}` });
      await run(`${session}/${view}`, /"revision":\d/);
    }
    await run(`#/sessions/${encodeURIComponent("Anna's (new) agents")}/agents?open=agents%2FAppAgent`, /"platform":"linux"/);
    await run(`#/sessions/${encodeURIComponent("Anna's (new) state")}/state?path=plan`, /"title":"Quarter report"/);
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
    await server.stop();
  }
});
