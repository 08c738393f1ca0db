// Icons as strokes on a 16 × 16 grid.

import { html } from "../core/dom.js";

const PATHS = {
  sessions: "M2.5 3.5h11v7h-11zM5 13.5l1-3M11 13.5l-1-3",
  timeline: "M3 3h5M3 8h10M3 13h7",
  question: "M6 6a2 2 0 1 1 3 1.7c-.6.4-1 .8-1 1.5M8 11.5v.1M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8z",
  screenshot: "M2 3.5h12v9H2zM2 10.5l3.5-3 3 2.5 2-1.5 3.5 2.5M10.5 6.2v.1",
  state: "M3 2.5h4v3H3zM9 6.5h4v3H9zM9 11h4v3H9zM5 5.5V12.5h4M5 8h4",
  prompt: "M2.5 3h11v8h-6l-3 2.5V11h-2zM5 6h6M5 8.3h4",
  past: "M2.3 8a5.7 5.7 0 1 1 1.7 4M2.3 8l-1-1.6M2.3 8l1.7-1M8 4.8V8l2.2 1.6",
  agents: "M8 7.3a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8zM3 13.5c.5-2.6 2.4-4 5-4s4.5 1.4 5 4",
  tasks: "M2.5 3.5h3v3h-3zM2.5 9.5h3v3h-3zM8 5h5.5M8 11h5.5",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3 14 14",
  request: "M3 2.5h10v11H3zM5.5 5.5h5M5.5 8h5M5.5 10.5h3",
  step: "M3 8h9M8.5 4.5 12 8l-3.5 3.5",
  memory: "M4 3.5c0-1 8-1 8 0v9c0 1-8 1-8 0zM4 3.5c0 1 8 1 8 0M4 8c0 1 8 1 8 0",
  message: "M2 3.5h12v9H2zM2 4l6 5 6-5",
  status: "M8 2.5v5.5l3.5 2M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8z",
  history: "M4 2.5v8M4 10.5a1.8 1.8 0 1 0 0 .01M4 6c4 0 7-.5 7-3M11 3.2a1.5 1.5 0 1 0 0-.01",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  link: "M6.5 9.5l3-3M7 4.5l1.7-1.7a2.7 2.7 0 0 1 3.8 3.8L10.8 8.3M9 11.5l-1.7 1.7a2.7 2.7 0 0 1-3.8-3.8L5.2 7.7",
  terminal: "M2 3h12v10H2zM4.5 6l2 2-2 2M8 10.5h3.5",
  sun: "M8 5.3a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
  system: "M2 3h12v8H2zM6 13.5h4",
  warn: "M8 2.3 14.3 13.5H1.7zM8 6.5v3M8 11.5v.1",
  check: "M3 8.5 6.5 12 13 4.5",
  plus: "M8 3v10M3 8h10",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4 6 8l4 4",
  up: "M4 10l4-4 4 4",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.5v9l7-4.5z",
  stop: "M4 4h8v8H4z",
  fork: "M4.5 4.8a1.5 1.5 0 1 0 0-.01M11.5 4.8a1.5 1.5 0 1 0 0-.01M8 14.2a1.5 1.5 0 1 0 0-.01M4.5 6c0 3 3.5 2 3.5 6M11.5 6c0 3-3.5 2-3.5 6",
  restore: "M3 6.5h6.5a3.5 3.5 0 1 1 0 7H6M3 6.5 5.5 4M3 6.5 5.5 9",
  download: "M8 2.5v7.5M5 7.5 8 10.5l3-3M3 13.5h10",
  edit: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3z",
  trash: "M3.5 4.5h9M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9",
  bell: "M4 11V7.5a4 4 0 0 1 8 0V11l1 1H3zM7 14h2",
  user: "M8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.5-2.5 2.4-3.8 5-3.8s4.5 1.3 5 3.8",
  filter: "M2.5 3.5h11L9.5 8.5v4l-3 1v-5z",
  expand: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  pin: "M6 2.5h4l-.5 4 2 2.5h-7l2-2.5zM8 9v4.5",
  columns: "M2.5 3h11v10h-11zM8 3v10",
};

/** An icon; decorative unless `label` is given. */
export function Icon({ name, label }) {
  const hidden = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return html`<svg class="icon" viewBox="0 0 16 16" ...${hidden}><path d=${PATHS[name] ?? ""} /></svg>`;
}
