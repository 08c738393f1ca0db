// Libraries in vendor/: those of vendor.json, and few.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { test } from "node:test";

const page = new URL("../../../crates/ui/page/", import.meta.url);
const vendor = new URL("vendor/", page);

function files(folder) {
  return readdirSync(folder, { recursive: true }).map(String).filter((name) => statSync(new URL(name, folder)).isFile());
}

test("each file of a library is the listed one, and they have at most 150 kB", () => {
  const { packages } = JSON.parse(readFileSync(new URL("vendor.json", vendor)));
  const listed = packages.flatMap((one) => one.files);
  assert.deepEqual(files(vendor).sort(), ["LICENSES.txt", "vendor.json", ...listed.map((one) => one.file)].sort());
  const licences = readFileSync(new URL("LICENSES.txt", vendor), "utf8");
  for (const { name, version, licence, integrity } of packages) {
    assert.ok(licences.includes(`${name} ${version} (${licence})`), name);
    assert.match(integrity, /^sha512-/);
  }
  for (const { file, sha256, bytes } of listed) {
    const content = readFileSync(new URL(file, vendor));
    assert.equal(createHash("sha256").update(content).digest("hex"), sha256, file);
    assert.equal(content.length, bytes, file);
  }
  assert.ok(listed.reduce((sum, one) => sum + one.bytes, 0) <= 150_000);
});

test("no file has scripts, styles or addresses of elsewhere", () => {
  for (const name of files(page).filter((one) => /\.(js|css|html)$/.test(one) && !one.startsWith("vendor/"))) {
    const text = readFileSync(new URL(name, page), "utf8");
    assert.doesNotMatch(text, /innerHTML|dangerouslySetInnerHTML|\beval\(|new Function|@import|\burl\((?!#)/, name);
    assert.doesNotMatch(text.replaceAll("http://www.w3.org/", ""), /(src|href)="https?:/, name);
  }
});

test("a class that one view's style sets for itself is no other's", () => {
  const styles = files(page).filter((name) => name.endsWith(".css"));
  const set = new Map();
  const used = new Map();
  for (const name of styles) {
    const text = readFileSync(new URL(name, page), "utf8").replaceAll(/\/\*.*?\*\//gs, "");
    for (const [, selectors] of text.matchAll(/([^{}]+)\{/g)) {
      for (const selector of selectors.split(",").map((one) => one.trim())) {
        for (const [, one] of selector.matchAll(/\.([\w-]+)/g)) used.set(one, (used.get(one) ?? new Set()).add(name));
        const alone = /^\.([\w-]+)$/.exec(selector)?.[1];
        if (alone && name.includes("view-")) set.set(alone, name);
      }
    }
  }
  const shared = [...set].filter(([one]) => used.get(one).size > 1).map(([one, name]) => `.${one} of ${name} is in ${[...used.get(one)].join(", ")}`);
  assert.deepEqual(shared, []);
});
