import { setTimeout } from "node:timers/promises"

/** Waits until `performance.now()` reaches `atMs`. Resolves immediately if that time is in the past. */
export async function untilMs(atMs: number): Promise<void> {
  for (let leftMs = atMs - performance.now(); leftMs > 0; leftMs = atMs - performance.now()) {
    // A timer may fire a fraction of a millisecond early.
    await setTimeout(Math.ceil(leftMs))
  }
}

/** Returns the next multiple of `windowMs` since the epoch by the wall clock, as a time of `performance.now()`. */
export function nextMultiple(windowMs: number): number {
  return performance.now() + windowMs - (Date.now() % windowMs)
}

/** Waits for the next window since the epoch if the current one ends within `forMs`. */
export async function stayInWindow(windowMs: number, forMs: number): Promise<void> {
  const endMs = nextMultiple(windowMs)
  if (endMs - performance.now() < forMs) await untilMs(endMs + 1)
}
