import { random } from "../clients/sequence.ts"

/** Times of the requests of one client in milliseconds, in ascending order from 0. */
export type Arrivals = Float64Array

/** Returns requests at random times, `aWindow` per window on average. */
export function poisson(aWindow: number, windowMs: number, windows: number, seed: number): Arrivals {
  const next = random(seed)
  const times: number[] = []
  const meanMs = windowMs / aWindow
  for (let atMs = gap(next, meanMs); atMs < windows * windowMs; atMs += gap(next, meanMs)) times.push(atMs)
  return floored(times)
}

/**
 * Returns bursts at random times, `aWindow` requests per window on average. A burst has a few to some hundred requests,
 * a few milliseconds apart.
 */
export function bursty(aWindow: number, windowMs: number, windows: number, seed: number): Arrivals {
  const next = random(seed)
  const times: number[] = []
  const meanSize = aWindow / 4
  const meanMs = (windowMs * meanSize) / aWindow
  for (let atMs = gap(next, meanMs); atMs < windows * windowMs; atMs += gap(next, meanMs)) {
    const size = Math.ceil(gap(next, meanSize))
    for (let one = 0, burstMs = atMs; one < size; one++, burstMs += gap(next, 5)) times.push(burstMs)
  }
  return floored(times.toSorted((a, b) => a - b))
}

/**
 * Returns `aWindow` requests per window on average, at random times for about half a window, then none for about as
 * long.
 */
export function onOff(aWindow: number, windowMs: number, windows: number, seed: number): Arrivals {
  const next = random(seed)
  const times: number[] = []
  const meanMs = windowMs / aWindow / 2
  for (let atMs = 0; atMs < windows * windowMs; ) {
    const endsMs = atMs + gap(next, windowMs / 2)
    for (atMs += gap(next, meanMs); atMs < endsMs; atMs += gap(next, meanMs)) times.push(atMs)
    atMs = endsMs + gap(next, windowMs / 2)
  }
  return floored(times)
}

/**
 * Returns the worst traffic for counters with window boundaries. Half of the requests arrive in the last hundredth of
 * a window, and half in the first hundredth of the next window.
 */
export function edge(aWindow: number, windowMs: number, windows: number, seed: number): Arrivals {
  const next = random(seed)
  const times: number[] = []
  for (let window = 1; window <= windows; window++) {
    for (let one = 0; one < aWindow; one++) {
      const offsetMs = (next() * windowMs) / 100
      times.push(window * windowMs + (one % 2 === 0 ? offsetMs : -1 - offsetMs))
    }
  }
  return floored(times.toSorted((a, b) => a - b))
}

/** Returns a random, exponentially distributed time between two events. */
function gap(next: () => number, mean: number): number {
  return -Math.log(1 - next()) * mean
}

function floored(times: readonly number[]): Arrivals {
  return Float64Array.from(times, Math.floor)
}
