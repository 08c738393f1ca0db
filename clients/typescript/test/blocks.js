/** Writes the blocks of the guide as one module, which is compiled and run with the tests. */

import { readFileSync, writeFileSync } from "node:fs";

const guide = readFileSync(new URL("../../../docs/guide/typescript.md", import.meta.url), "utf8");
const blocks = [...guide.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block]) => block);
writeFileSync(new URL("guide.ts", import.meta.url), blocks.join("\n"));
