#!/usr/bin/env node
// The command `blackboard`: runs the binary of this platform's package, and passes signals and the exit code on.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");
const path = require("node:path");
const { optionalDependencies } = require("../package.json");

// How a shell reports that a command cannot be run, and that a signal ended it.
const CANNOT_RUN = 126;
const ENDED_BY_SIGNAL = 128;
const SIGNALS = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"];

// Some package managers ignore `libc` and install both packages of Linux, so the right one is looked for first.
function binary() {
  const platform = `${process.platform}-${process.arch}`;
  // Without this the report asks for the names of all open connections.
  process.report.excludeNetwork = true;
  const libc = process.report.getReport().header.glibcVersionRuntime ? "gnu" : "musl";
  const fits = Object.keys(optionalDependencies).filter((name) => name.includes(`-server-${platform}`));
  fits.sort((a, b) => Number(b.endsWith(libc)) - Number(a.endsWith(libc)));
  for (const name of fits) {
    try {
      const folder = path.dirname(require.resolve(`${name}/package.json`));
      return path.join(folder, "bin", process.platform === "win32" ? "blackboard.exe" : "blackboard");
    } catch {
      // It is not installed.
    }
  }
  const remedy =
    fits.length === 0
      ? "there is no package for it; please build from source"
      : `please install again without --omit=optional, so that ${fits.join(" or ")} is installed`;
  console.error(`blackboard-server has no program for ${platform} (${libc}): ${remedy}.`);
  process.exit(CANNOT_RUN);
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of SIGNALS) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`blackboard-server cannot start its program: ${error.message}`);
  process.exit(CANNOT_RUN);
});
child.on("exit", (code, signal) => {
  process.exit(code ?? ENDED_BY_SIGNAL + os.constants.signals[signal]);
});
