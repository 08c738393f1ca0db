// The one place where views get components, hooks and signals from.

import htm from "../vendor/htm.js";
import { Fragment, h, render } from "../vendor/preact.js";
import { useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { batch, computed, signal } from "../vendor/signals.js";

/** A number that kept its text is shown as that text. */
const child = (one) => (JSON.isRawJSON?.(one) ? one.rawJSON : one);

export const html = htm.bind((type, props, ...children) => h(type, props, ...children.map(child)));

/** Joins class names; falsy ones are left out. */
export function cx(...names) {
  return names.filter(Boolean).join(" ");
}

export { Fragment, batch, computed, h, render, signal, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState };
