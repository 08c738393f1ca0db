/** Package as it is published: complete, and typed for those who install it. */

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { root, startServer } from "./server.js";

const run = promisify(execFile);

/** Settings of those who install the package: Node without the types of a page, and a bundler for a page. */
const SETTINGS = [
  ["--module", "nodenext", "--lib", "es2022", "--skipLibCheck", "false"],
  ["--module", "esnext", "--moduleResolution", "bundler", "--skipLibCheck", "true"],
];

const PROGRAM = `
import { createClient } from "agent-blackboard";
const board = createClient({ url: process.argv[2] ?? "" });
const params = { path: { session: "packed" } };
const { data } = await board.POST("/v1/sessions/{session}/trajectories", { params, body: { step: 1 } });
const revision: number = data.revision;
console.log(revision);
`;

test("the packed package has what its users need", async (t) => {
  const home = mkdtempSync(join(tmpdir(), "blackboard-package-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const modules = join(home, "node_modules");
  mkdirSync(join(modules, "@types"), { recursive: true });
  execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", home], { cwd: root, stdio: "ignore" });
  const archive = readdirSync(home).find((name) => name.endsWith(".tgz")) ?? "";
  execFileSync("tar", ["-xzf", archive], { cwd: home });
  symlinkSync(join(home, "package"), join(modules, "agent-blackboard"));
  for (const name of ["openapi-fetch", "openapi-typescript-helpers", "@types/node", "undici-types"]) {
    symlinkSync(join(root, "node_modules", name), join(modules, name));
  }
  // A package finds its dependencies from where it lies.
  symlinkSync(modules, join(home, "package/node_modules"));
  const packed = readdirSync(join(home, "package"));
  assert.deepEqual(packed.sort(), ["LICENSE", "README.md", "dist", "node_modules", "package.json"]);

  writeFileSync(join(home, "package.json"), '{"type":"module"}');
  writeFileSync(join(home, "program.ts"), PROGRAM);
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  for (const settings of SETTINGS) {
    const strict = ["--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--types", "node"];
    await run(process.execPath, [compiler, ...strict, ...settings, "program.ts"], { cwd: home }).catch(told);
  }
  const server = await startServer(t);
  const printed = execFileSync(process.execPath, ["program.js", server.url], { cwd: home, encoding: "utf8" });
  assert.equal(printed, "1\n");
});

/** The compiler tells what is wrong on its standard output. */
function told(error: { stdout: string }): never {
  assert.fail(error.stdout);
}

test("the library has no imports of Node's", () => {
  for (const name of readdirSync(join(root, "dist")).filter((name) => name.endsWith(".js"))) {
    assert.doesNotMatch(readFileSync(join(root, "dist", name), "utf8"), /from "node:|require\(|process\./, name);
  }
});
