// The statuses of agents and the moves between them: the original's seven, with those that a session adds.
//
// The same table as the server's (`crates/board/src/model/agent.rs`); a test tries each move on a server.

/** The statuses of every session. */
export const BUILT_IN = ["CONTINUE", "PENDING", "SCREENSHOT", "CONFIRM", "FAIL", "ERROR", "FINISH"];

/** The status of a new agent. */
export const FIRST = "CONTINUE";

const MOVES = {
  CONTINUE: ["PENDING", "SCREENSHOT", "CONFIRM", "FAIL", "ERROR", "FINISH"],
  PENDING: ["CONTINUE"],
  SCREENSHOT: ["CONTINUE"],
  CONFIRM: ["CONTINUE", "FAIL"],
  FAIL: ["CONTINUE"],
  ERROR: ["CONTINUE"],
  FINISH: ["CONTINUE"],
};

/** All statuses of a session with these `agent_states`. */
export function statuses(states = {}) {
  return [...BUILT_IN, ...Object.keys(states ?? {}).filter((name) => !BUILT_IN.includes(name))];
}

/** The statuses that may follow one, itself aside. */
export function nextOf(from, states = {}) {
  const known = statuses(states);
  return known.filter((to) => to !== from && mayMove(from, to, states ?? {}, known));
}

/** All moves as `[from, to]`. */
export function moves(states = {}) {
  return statuses(states).flatMap((from) => nextOf(from, states).map((to) => [from, to]));
}

function mayMove(from, to, states, known) {
  const own = (name) => (Object.hasOwn(states, name) ? states[name] : undefined);
  if (Object.hasOwn(MOVES, from) && MOVES[from].includes(to)) return true;
  if (own(to)?.from?.includes(from) || own(from)?.to?.includes(to)) return true;
  // An agent can leave a status that its session has removed.
  return !known.includes(from) && to === FIRST;
}

/** The size of a status's box in the diagram. */
const BOX = { width: 128, height: 32 };

/** Places of statuses around the first one: `{width, height, box, at: Map of name to [x, y]}`. */
export function placed(names) {
  const around = names.filter((name) => name !== FIRST);
  const rx = Math.max(185, around.length * 27);
  const ry = Math.max(112, around.length * 17);
  const width = 2 * rx + BOX.width + 16;
  const height = 2 * ry + BOX.height + 16;
  const at = new Map([[FIRST, [width / 2, height / 2]]]);
  around.forEach((name, i) => {
    const angle = Math.PI + (2 * Math.PI * i) / around.length;
    at.set(name, [width / 2 + rx * Math.cos(angle), height / 2 + ry * Math.sin(angle)]);
  });
  return { width, height, box: BOX, at };
}

/** The path of a move's arrow between two boxes, bent so that the way back does not cover it. */
export function arrow([ax, ay], [bx, by], { width, height }) {
  const dx = bx - ax;
  const dy = by - ay;
  const length = Math.hypot(dx, dy) || 1;
  const bend = Math.min(18, length / 6);
  const mid = [(ax + bx) / 2 - (dy / length) * bend, (ay + by) / 2 + (dx / length) * bend];
  const from = edge([ax, ay], mid, width / 2 + 1, height / 2 + 1);
  const to = edge([bx, by], mid, width / 2 + 3, height / 2 + 3);
  return `M${from.map(rounded).join(" ")}Q${mid.map(rounded).join(" ")} ${to.map(rounded).join(" ")}`;
}

/** The point where a line from the middle of a box leaves it. */
function edge([x, y], [tx, ty], halfWidth, halfHeight) {
  const dx = tx - x;
  const dy = ty - y;
  const scale = Math.min(dx === 0 ? Infinity : halfWidth / Math.abs(dx), dy === 0 ? Infinity : halfHeight / Math.abs(dy), 1);
  return [x + dx * scale, y + dy * scale];
}

function rounded(n) {
  return Math.round(n * 10) / 10;
}
