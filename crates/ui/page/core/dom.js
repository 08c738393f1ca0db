// The one place where views get components, hooks and signals from.

import htm from "../vendor/htm.js";
import { Fragment, createContext, h, render } from "../vendor/preact.js";
import { useCallback, useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useReducer, useRef, useState } from "../vendor/hooks.js";
import { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "../vendor/signals.js";

/** A number that kept its text is shown as that text. */
const child = (one) => (JSON.isRawJSON?.(one) ? one.rawJSON : one);

export const html = htm.bind((type, props, ...children) => h(type, props, ...children.map(child)));

/** Joins class names; falsy ones are left out. */
export function cx(...names) {
  return names.filter(Boolean).join(" ");
}

export {
  Fragment, batch, computed, createContext, effect, h, render, signal, untracked, useCallback, useComputed, useContext, useEffect,
  useErrorBoundary, useId, useLayoutEffect, useMemo, useReducer, useRef, useSignal, useSignalEffect, useState,
};
