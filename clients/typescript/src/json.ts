/**
 * JSON texts of values, refused where `JSON.stringify` would change a value.
 *
 * `JSON.stringify` drops `undefined` and functions, makes `null` of NaN, and `{}` of a Map. Each of these would be
 * data that is lost without a word.
 */

import { UnsupportedValue } from "./errors.js";

/** Levels of nesting; the server takes 128 in an item. */
const LEVELS_MAX = 1000;

/** Returns the JSON text of a value. Throws `UnsupportedValue` with the place of a part that is no JSON. */
export function jsonText(value: unknown): string {
  check(value, "", []);
  return JSON.stringify(value);
}

function check(value: unknown, pointer: string, above: readonly object[]): void {
  switch (typeof value) {
    case "boolean":
      return;
    case "string":
      return checkText(value, pointer);
    case "number":
      if (!Number.isFinite(value)) refuse(pointer, `${value} is not a JSON number; send null or a string`);
      return;
    case "bigint":
      return refuse(pointer, "a BigInt is not a JSON number in JavaScript; send it as a string");
    case "undefined":
      return refuse(pointer, "undefined is not a JSON value; send null, or leave the member out");
    case "object":
      return value === null ? undefined : checkObject(value, pointer, above);
    default:
      return refuse(pointer, `a ${typeof value} is not a JSON value`);
  }
}

function checkObject(value: object, pointer: string, above: readonly object[]): void {
  if (above.includes(value)) refuse(pointer, "the value contains itself");
  if (above.length >= LEVELS_MAX) refuse(pointer, `the value has more than ${LEVELS_MAX} levels`);
  const inside = [...above, value];
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  if (Array.isArray(value)) {
    // By index, so that a hole is seen.
    for (let at = 0; at < value.length; at += 1) check(value[at], `${pointer}/${at}`, inside);
  } else if (value instanceof Date && Number.isNaN(value.valueOf())) {
    refuse(pointer, "the date is invalid");
  } else if ("toJSON" in value && typeof value.toJSON === "function") {
    check(value.toJSON(), pointer, inside);
  } else if (kind !== "Object") {
    refuse(pointer, `a ${kind} is not a JSON value; send an object or an array`);
  } else {
    for (const [name, member] of Object.entries(value)) {
      const place = `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      checkText(name, place);
      check(member, place, inside);
    }
  }
}

function checkText(text: string, pointer: string): void {
  if (!text.isWellFormed()) refuse(pointer, "the text has a lone surrogate, which UTF-8 cannot encode");
}

function refuse(pointer: string, detail: string): never {
  throw new UnsupportedValue(pointer === "" ? detail : `${pointer.toWellFormed()}: ${detail}`);
}
