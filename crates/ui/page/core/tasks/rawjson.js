// Parts of a JSON text as they stand in it: JavaScript's numbers and objects would change them.

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
