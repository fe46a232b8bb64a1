import { setTimeout } from "node:timers/promises"

/** Waits until `performance.now()` is there; at once when it is past. */
export async function untilMs(atMs: number): Promise<void> {
  for (let leftMs = atMs - performance.now(); leftMs > 0; leftMs = atMs - performance.now()) {
    // A timer may be early by a part of a millisecond.
    await setTimeout(Math.ceil(leftMs))
  }
}

/** The next multiple of `windowMs` since the epoch by the wall clock, as `performance.now()` will tell it. */
export function nextMultiple(windowMs: number): number {
  return performance.now() + windowMs - (Date.now() % windowMs)
}

/** Waits for the next window since the epoch when the present one ends within `forMs`. */
export async function stayInWindow(windowMs: number, forMs: number): Promise<void> {
  const endMs = nextMultiple(windowMs)
  if (endMs - performance.now() < forMs) await untilMs(endMs + 1)
}
