// All that a file of a session has, read through the API within bounds.

import { board, get, withQuery } from "../api.js";
import { LOGS } from "../past.js";

/** The newest entries of a log, and the agents, that a file has. */
export const ENTRIES_MAX = 5000;
const AGENTS_MAX = 1000;

/** The entries of one request. */
const PAGE = 500;

/** The side of an image in pixels, and the bytes of all images. */
const SIDE_PX = 1280;
export const IMAGE_BYTES_MAX = 24_000_000;

/** Reads a session at a revision: `{agents, state, logs: {name: {count, entries}}, images, left}`. `onProgress` gets a text. */
export async function readSession(session, at, { signal, onProgress }) {
  const read = async (path, query) => (await get(withQuery(path, query), { signal })).body;
  onProgress("Reading agents and state");
  const agents = (await read(board(session, "agents"), { at, limit: AGENTS_MAX })).agents;
  const state = (await get(withQuery(board(session, "state"), { at }), { signal })).text;
  const logs = {};
  for (const log of LOGS) {
    const found = { count: 0, entries: [] };
    for (let before; found.entries.length < ENTRIES_MAX; ) {
      const page = await read(board(session, log), { at, order: "desc", limit: PAGE, before });
      found.count = page.count;
      found.entries.push(...page.entries);
      onProgress(`Reading ${log}: ${found.entries.length} of ${page.count}`);
      if (!page.more) break;
      before = page.next;
    }
    logs[log] = found;
  }
  return { agents, state, logs, ...(await readImages(logs.screenshots.entries, { signal, onProgress })) };
}

/** Reads the images of the newest screenshots, as `data:` addresses by seq, and counts those that are left out. */
async function readImages(entries, { signal, onProgress }) {
  const images = new Map();
  const shown = entries.filter((entry) => entry.image);
  let [bytes, left] = [0, 0];
  for (const [index, entry] of shown.entries()) {
    onProgress(`Reading images: ${index + 1} of ${shown.length}`);
    const response = bytes < IMAGE_BYTES_MAX ? await fetch(`${entry.image.url}?max_px=${SIDE_PX}`, { signal, credentials: "same-origin" }) : undefined;
    const blob = response?.ok ? await response.blob() : undefined;
    if (blob && /^image\/(png|jpeg|gif|webp)$/.test(blob.type) && bytes + blob.size <= IMAGE_BYTES_MAX) {
      bytes += blob.size;
      images.set(entry.seq, await addressOf(blob));
    } else {
      left += 1;
    }
  }
  return { images, left };
}

function addressOf(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}
