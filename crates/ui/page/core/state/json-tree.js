// A JSON text as a tree that keeps each number's text and the order of members.
//
// A node is `{kind: "object", members: Map}`, `{kind: "array", elements}` or a leaf `{kind, raw}`; `size` counts the nodes in
// it. Nodes never change: an update makes new ones along its path, so that equal nodes are what did not change.

/** Deeper texts are refused; the server takes 128 levels. */
const DEPTH_MAX = 400;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORDS = { true: "boolean", false: "boolean", null: "null" };

/** A fault in a JSON text, with its place counted from 1. */
export class JsonError extends Error {
  constructor(detail, text, offset) {
    const before = text.slice(0, offset);
    const line = before.split("\n").length;
    const column = offset - before.lastIndexOf("\n");
    super(`line ${line}, column ${column}: ${detail}`);
    this.name = "JsonError";
    Object.assign(this, { detail, line, column, offset });
  }
}

/** Parses a JSON text; throws a [`JsonError`]. */
export function parseJson(text) {
  const parser = new Parser(text);
  const node = parser.value(0);
  parser.space();
  if (parser.at < text.length) parser.fail("expected the end of the text");
  return node;
}

class Parser {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  fail(detail, at = this.at) {
    throw new JsonError(at >= this.text.length ? `${detail}, found the end of the text` : detail, this.text, at);
  }

  space() {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      this.at += 1;
    }
  }

  /** The next character after white space, taken if it is the wanted one. */
  takes(char) {
    this.space();
    if (this.text[this.at] !== char) return false;
    this.at += 1;
    return true;
  }

  value(depth) {
    this.space();
    if (depth > DEPTH_MAX) this.fail(`deeper than ${DEPTH_MAX} levels`);
    const char = this.text[this.at];
    if (char === "{") return this.object(depth);
    if (char === "[") return this.array(depth);
    if (char === '"') return { kind: "string", raw: this.string(), size: 1 };
    if (char === "-" || (char >= "0" && char <= "9")) return this.number();
    for (const [word, kind] of Object.entries(WORDS)) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return { kind, raw: word, size: 1 };
      }
    }
    return this.fail("expected a value");
  }

  object(depth) {
    const members = new Map();
    let size = 1;
    this.at += 1;
    if (this.takes("}")) return { kind: "object", members, size };
    do {
      this.space();
      if (this.text[this.at] !== '"') this.fail("expected a key in double quotes");
      const key = JSON.parse(this.string());
      if (!this.takes(":")) this.fail("expected ':' after the key");
      const node = this.value(depth + 1);
      size += node.size;
      members.set(key, node);
    } while (this.takes(","));
    if (!this.takes("}")) this.fail("expected ',' or '}'");
    return { kind: "object", members, size };
  }

  array(depth) {
    const elements = [];
    let size = 1;
    this.at += 1;
    if (this.takes("]")) return { kind: "array", elements, size };
    do {
      const node = this.value(depth + 1);
      size += node.size;
      elements.push(node);
    } while (this.takes(","));
    if (!this.takes("]")) this.fail("expected ',' or ']'");
    return { kind: "array", elements, size };
  }

  number() {
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.text);
    if (!match) this.fail("expected digits");
    this.at += match[0].length;
    if (/[\w.+]/.test(this.text[this.at] ?? "")) this.fail("not a JSON number");
    return { kind: "number", raw: match[0], size: 1 };
  }

  string() {
    const start = this.at;
    let end = start;
    for (;;) {
      end = this.text.indexOf('"', end + 1);
      if (end < 0) this.fail("the string has no closing quotation mark", start);
      let slashes = 0;
      while (this.text[end - 1 - slashes] === "\\") slashes += 1;
      if (slashes % 2 === 0) break;
    }
    const raw = this.text.slice(start, end + 1);
    const bad = /[\u0000-\u001f]|(?<!\\)(?:\\\\)*\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})/.exec(raw.length < 1_000_000 ? raw : "");
    if (bad) this.fail(bad[0] < " " ? "a line break or control character in a string" : "an unknown escape in a string", start + bad.index);
    this.at = end + 1;
    return raw;
  }
}

/** The JSON text of a node, without white space. */
export function textOf(node) {
  const out = [];
  write(node, out);
  return out.join("");
}

function write(node, out) {
  if (node.kind === "object") {
    let mark = "{";
    for (const [key, value] of node.members) {
      out.push(mark, JSON.stringify(key), ":");
      write(value, out);
      mark = ",";
    }
    out.push(mark === "{" ? "{}" : "}");
  } else if (node.kind === "array") {
    let mark = "[";
    for (const value of node.elements) {
      out.push(mark);
      write(value, out);
      mark = ",";
    }
    out.push(mark === "[" ? "[]" : "]");
  } else out.push(node.raw);
}

/** The nodes in an object or array with their keys, in order; nothing for others. */
export function children(node) {
  if (node.kind === "object") return [...node.members];
  if (node.kind === "array") return node.elements.map((value, index) => [index, value]);
  return [];
}

/** The number of members or elements. */
export function count(node) {
  return node.kind === "object" ? node.members.size : node.kind === "array" ? node.elements.length : 0;
}

/** The start of a node's text in one line. */
export function preview(node, max = 80) {
  if (node.kind !== "object" && node.kind !== "array") {
    const raw = unescaped(node.raw.slice(0, max * 6));
    return raw.length > max ? `${raw.slice(0, max - 1)}…` : raw;
  }
  const object = node.kind === "object";
  let text = "";
  for (const [key, value] of object ? node.members : node.elements.entries()) {
    if (text.length > max) return `${object ? "{" : "["}${text.slice(0, max)}…`;
    text += `${text ? ", " : ""}${object ? `${key}: ` : ""}${preview(value, 24)}`;
  }
  return object ? `{${text}}` : `[${text}]`;
}

/**
 * A JSON text with its escapes of letters as letters: `\u00e9` is `é`. Escapes of control characters and of those that
 * change the direction of a text stay.
 */
export function unescaped(text) {
  return text.replace(/\\\\|\\u([0-9a-fA-F]{4})/g, (whole, code) => {
    const n = code === undefined ? 0 : Number.parseInt(code, 16);
    const hidden = n < 0xa1 || (n >= 0x200b && n <= 0x200f) || (n >= 0x2028 && n <= 0x202f) || (n >= 0x2060 && n <= 0x206f) || n === 0xfeff;
    return hidden ? whole : String.fromCharCode(n);
  });
}
