// Sessions for the measurements: texts, images and the writes that make them.

import { deflateSync } from "node:zlib";

const AGENTS = ["HostAgent", "ExcelAgent", "WordAgent", "LinuxAgent"];

/** How many writes are under way at once. */
const LANES = 32;

/** The text of the last entry of the large session, by which the page is known to be there. */
export const NEWEST = "The newest entry of all";

export const ENTRIES = 10_000;
export const SHOTS = 500;

function path(session, ...rest) {
  return ["/v1/sessions", session, ...rest].join("/");
}

/** Runs `count` writes, some at once. */
async function writes(count, write) {
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const i = next;
      next += 1;
      await write(i);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

function step(i) {
  return {
    Step: i,
    Agent: AGENTS[i % 4],
    Observation: `Window ${i % 17} is in front, with ${i % 23} rows of the table selected and a dialog open beside it.`,
    Thought: `Step ${i} needs the window that step ${i - 1} opened. `.repeat(4),
    Action: `click(${i % 1280}, ${i % 800})`,
    Status: i % 97 === 0 ? "FAIL" : "CONTINUE",
    Cost: 0.01,
    Duration: (i % 90) / 10,
    Results: "ok ".repeat(50),
  };
}

/** The CRC-32 of PNG's chunks, since zlib's own is not in Node 20's first releases. */
function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** A PNG whose pixels depend on a number. */
export function image(i) {
  const [width, height] = [320, 200];
  const rows = Buffer.alloc((width * 3 + 1) * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = y * (width * 3 + 1) + 1 + x * 3;
      const isLight = (Math.floor(x / 20) + Math.floor(y / 20) + i) % 2;
      rows.set(isLight ? [(x + i) % 256, (y + i * 7) % 256, (i * 31) % 256] : [30, 30, 40], at);
    }
  }
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const whole = Buffer.alloc(body.length + 8);
    whole.writeUInt32BE(data.length, 0);
    body.copy(whole, 4);
    whole.writeUInt32BE(crc32(body), body.length + 4);
    return whole;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** One write of a mixed session: mostly steps, with a screenshot, request, question, memory or value of the state between them. */
function mixed(server, session, i, shotEach) {
  const agent = AGENTS[i % 4];
  const metadata = encodeURIComponent(JSON.stringify(`step ${i}`));
  if (i % shotEach === 0) return server.send("POST", `${path(session, "screenshots")}?metadata=${metadata}&image_path=s${i}.png`, image(i), AGENTS[(i / shotEach) % 4]);
  if (i % 50 === 1) return server.send("POST", path(session, "requests"), { request: `Prepare part ${i} of the report` }, agent);
  if (i % 100 === 2) return server.send("POST", path(session, "questions"), { question: `Is figure ${i} the newest one?` }, agent);
  if (i % 10 === 3) return server.send("POST", path(session, "agents", agent, "memory"), step(i), agent);
  return server.send("POST", path(session, "trajectories"), step(i), agent);
}

/** A session of 10,000 entries, 500 of them screenshots, and a state. */
export async function fillLarge(server, session) {
  await writes(ENTRIES - 1, async (i) => {
    await mixed(server, session, i, ENTRIES / SHOTS);
    if (i % 20 === 0) await server.send("PUT", path(session, "state", "progress", AGENTS[i % 4]), { step: i });
  });
  await server.send("POST", path(session, "trajectories"), { ...step(ENTRIES), Observation: NEWEST }, "HostAgent");
}

/** Sends `count` mixed writes at an even rate. Returns when all are answered. */
export async function stream(server, session, count, ms, from) {
  const begun = performance.now();
  const sent = [];
  for (let i = 0; i < count; i += 1) {
    const wait = begun + (i * ms) / count - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const n = from + i;
    if (n % 10 === 4) sent.push(server.send("PUT", path(session, "state", "live", AGENTS[n % 4]), { step: n }, AGENTS[n % 4]));
    else sent.push(mixed(server, session, n, 20));
  }
  await Promise.all(sent);
}

/** A state of so many leaves: tasks of ten values each. */
export async function fillState(server, session, leaves) {
  const task = (t) => ({
    title: `Task ${t}`, done: t % 3 === 0, cost: t / 7, owner: AGENTS[t % 4], note: "é ✓ text of some length", tags: ["a", "b"], size: { width: t, height: t + 1 }, kind: null,
  });
  const state = {};
  for (let t = 0; t * 10 < leaves; t += 1) (state[`group ${t % 30}`] ??= {})[`task ${t}`] = task(t);
  await server.send("PUT", path(session, "state"), state);
}

/** A session of so many revisions, with a failure, a checkpoint or a screenshot now and then. */
export async function fillPast(server, session, revisions) {
  await server.send("PUT", path(session, "state", "n"), 0);
  await writes(revisions - 1, (i) => {
    if (i % 500 === 0) return server.send("POST", `${path(session, "screenshots")}?metadata=%22s${i}%22`, image(i), AGENTS[i % 4]);
    if (i % 1000 === 1) return server.send("POST", path(session, "checkpoints"), { name: `point-${i}` });
    if (i % 250 === 2) return server.send("POST", path(session, "trajectories"), { ...step(i), Status: undefined, status: "FAIL" }, AGENTS[i % 4]);
    return server.send("PUT", path(session, "state", `n${i % 10}`), i, AGENTS[i % 4]);
  });
}

/** A session whose prompt has so many bytes: one request of many lines, and one of JSON in the steps. */
export async function fillPrompt(server, session, bytes) {
  const steps = Array.from({ length: 100 }, (_, i) => ({ ...step(i), Results: "a long result of a command, line by line. ".repeat(Math.floor(bytes / 100 / 43)) }));
  for (let i = 0; i < steps.length; i += 20) await server.send("POST", path(session, "trajectories"), steps.slice(i, i + 20), "HostAgent");
}
