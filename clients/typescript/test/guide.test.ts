/** Blocks of the guide, compiled as one module: each runs and prints what its comments say. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { root, startServer } from "./server.js";

const run = promisify(execFile);

test("the blocks of the guide run, and print what they say", async (t) => {
  const server = await startServer(t);
  const env = { ...process.env, BLACKBOARD_URL: server.url };
  const { stdout } = await run(process.execPath, [join(root, "build/guide.js")], { env, timeout: 60_000 });
  const blocks = readFileSync(join(root, "test/guide.ts"), "utf8");
  const expected = [...blocks.matchAll(/console\.log\(.*; \/\/ (.*)$/gm)].map(([, comment]) => comment);
  assert(expected.length > 10);
  assert.deepEqual(stdout.trimEnd().split("\n"), expected);
});
