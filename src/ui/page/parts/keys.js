// Keyboard shortcuts and fields.

/** True if keys belong to a field. */
export function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}
