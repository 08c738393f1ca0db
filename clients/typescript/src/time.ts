/**
 * Times: pauses between tries, time limits, and durations as the server writes them.
 */

const PAUSE_MS = 100;
const PAUSE_MS_MAX = 5_000;

/** The longest time that a timer takes. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

/** Milliseconds of one of the server's units. */
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the pause after this many tries: twice as long each time, half of it by chance. */
export function pauseMs(tries: number): number {
  const whole = Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** (tries - 1));
  return whole * (0.5 + Math.random() / 2);
}

/** Waits, or throws the signal's reason. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", end);
        resolve();
      },
      Math.min(ms, TIMER_MS_MAX),
    );
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** Returns milliseconds as the server's duration. */
export function duration(ms: number): string {
  return `${Math.ceil(ms)}ms`;
}

/** Returns the milliseconds of the server's duration; 0 if the text is none. */
export function milliseconds(text: string | null): number {
  const [, count, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text ?? "") ?? [];
  return Number(count ?? 0) * (UNITS[unit ?? ""] ?? 0);
}

/** A moment after which no more is tried. */
export class Deadline {
  readonly #end: number;

  /** `limitMs` from now; without it never. */
  constructor(limitMs: number = Infinity) {
    this.#end = performance.now() + limitMs;
  }

  /** The milliseconds that are left, at least 0. */
  get leftMs(): number {
    return Math.max(0, this.#end - performance.now());
  }
}
