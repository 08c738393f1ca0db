// The libraries in vendor/ are those of vendor.json, and few.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { test } from "node:test";

const page = new URL("../../../src/ui/page/", import.meta.url);
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
