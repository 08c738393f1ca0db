// Screenshots without a browser: the windowed grid's geometry, zoom and pan, and the texts of an entry.

import { pairs } from "./format.js";

/** The narrowest tile, the space between tiles, and the height of a tile's caption, in pixels. */
export const TILE_PX = 208;
export const GAP_PX = 12;
export const CAPTION_PX = 70;

/** The rows of tiles above and below the visible ones that are in the document too. */
const SPARE_ROWS = 2;

/** The smallest and largest zoom: image pixels to page pixels. */
export const ZOOM_MIN = 0.02;
export const ZOOM_MAX = 16;

/** The grid for a width: `{columns, tile, row}`, where `tile` is a tile's width and `row` a row's height with its gap. */
export function gridOf(width) {
  const columns = Math.max(1, Math.floor((width + GAP_PX) / (TILE_PX + GAP_PX)));
  const tile = Math.max(1, Math.floor((width - GAP_PX * (columns - 1)) / columns));
  return { columns, tile, row: Math.round(tile * 0.625) + CAPTION_PX + GAP_PX };
}

/** The tiles `[first, last)` of which the rows are near the visible part, from `top` pixels into the grid on. */
export function visible({ columns, row }, count, top, height) {
  const first = Math.max(0, Math.floor(top / row) - SPARE_ROWS) * columns;
  const last = Math.min(count, (Math.ceil((top + height) / row) + SPARE_ROWS) * columns);
  return [Math.min(first, count), Math.max(last, 0)];
}

/** The zoom at which an image is whole in a pane, never larger than it is. */
export function fitScale(image, pane) {
  if (!image.width || !image.height || !pane.width || !pane.height) return 1;
  return Math.min(1, pane.width / image.width, pane.height / image.height);
}

/** A view `{scale, x, y}` zoomed by a factor so that the point `at` (from the pane's centre) stays in its place. */
export function zoomed(view, factor, at = { x: 0, y: 0 }) {
  const scale = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, view.scale * factor));
  const real = scale / view.scale;
  return { scale, x: at.x - (at.x - view.x) * real, y: at.y - (at.y - view.y) * real };
}

/** A view moved so that a part of the image stays in the pane. */
export function held(view, image, pane) {
  const x = (image.width * view.scale + pane.width) / 2 - 40;
  const y = (image.height * view.scale + pane.height) / 2 - 40;
  return { ...view, x: clamp(view.x, x), y: clamp(view.y, y) };
}

function clamp(value, most) {
  return Math.min(Math.max(0, most), Math.max(-Math.max(0, most), value));
}

/** The metadata of a screenshot as a text, or "". */
export function metadataText(item) {
  return pairs(item?.metadata);
}

/**
 * Where the image of an entry is, at most `px` on its longest side: its address, or the data URL that its item keeps as a text, which
 * has no address. Undefined if it has no image.
 */
export function imageSource({ image, item } = {}, px) {
  if (image) return px ? `${image.url}?max_px=${px}` : image.url;
  const sent = item?.image_str;
  const head = typeof sent === "string" ? KEPT.exec(sent)?.[0] : undefined;
  // Browsers read what models are shown, except the URL-safe alphabet.
  return head && `${head}${sent.slice(head.length).replaceAll("-", "+").replaceAll("_", "/")}`;
}

/** The head of a data URL in base64. */
const KEPT = /^\s*data:\s*image\/[^,]*;\s*base64\s*,/i;

/** What stands for a screenshot's image where none is stored: its label, or what was sent in the image's place. */
export function labelText(item) {
  const path = item?.image_path;
  if (typeof path === "string" && path !== "") return path;
  const sent = item?.image_str;
  if (typeof sent === "string") return KEPT.test(sent) ? "" : sent;
  return sent === undefined || sent === null ? "" : JSON.stringify(sent);
}

/** Joins pages of entries by `seq` without doubles, ascending or descending. */
export function joined(before, more, newestFirst) {
  const known = new Set(before.map((entry) => entry.seq));
  const all = [...before, ...more.filter((entry) => !known.has(entry.seq))];
  return all.sort((a, b) => (newestFirst ? b.seq - a.seq : a.seq - b.seq));
}
