// JSON whose numbers keep their texts, and parts of a JSON text as they stand in it: 12345678901234567890 and 1.10 would be
// others as JavaScript's numbers.

/** Where a number may stand: more than the numbers of the text, since strings have such places too. */
const NUMBER = /(?:^|[[:,])\s*(-?\d[\d.eE+-]*)/g;

/** Parses a JSON text. A number that would be written in another way is an object that `JSON.stringify` writes as it was. */
export function parseExact(text) {
  if (JSON.rawJSON === undefined || !hasOthers(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, { source }) => (typeof value === "number" && changes(source) ? JSON.rawJSON(source) : value));
}

function hasOthers(text) {
  for (const [, source] of text.matchAll(NUMBER)) if (changes(source)) return true;
  return false;
}

function changes(source) {
  return String(Number(source)) !== source;
}

/** The number of a value that [`parseExact`] made, or undefined. */
export function numberOf(value) {
  return JSON.isRawJSON?.(value) ? Number(value.rawJSON) : typeof value === "number" ? value : undefined;
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s"{}[\],:]+/gs;

/** The text of a member of an object's text; of a repeated name the last. Undefined if it is not there. */
export function memberText(text, name) {
  if (text === undefined) return undefined;
  const wanted = JSON.stringify(name);
  let depth = 0;
  let key;
  let start;
  let found;
  let before;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const closes = token === "}" || token === "]";
    if (depth === 1 && start !== undefined && (token === "," || closes)) {
      if (key === wanted) found = text.slice(start, before);
      start = undefined;
    } else if (depth === 1 && start === undefined && token.startsWith('"')) {
      key = token;
    } else if (depth === 1 && token === ":" && start === undefined) {
      start = index + 1;
    }
    if (token === "{" || token === "[") depth += 1;
    if (closes) depth -= 1;
    before = index + token.length;
  }
  return found?.trim();
}
