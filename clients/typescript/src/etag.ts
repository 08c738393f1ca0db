/**
 * Tags of answers, as the server wrote them.
 */

/**
 * Returns the tag of what an answer shows, for `If-Match` and `If-None-Match`; `undefined` if it has none.
 *
 * `Blackboard-ETag` comes first, since a proxy that compresses may change `ETag`. The server's tags are strong: a weak
 * one was made so on the way, and would match no write.
 */
export function etagOf({ headers }: Response): string | undefined {
  return headers.get("Blackboard-ETag") ?? headers.get("ETag")?.replace(/^W\//, "");
}
