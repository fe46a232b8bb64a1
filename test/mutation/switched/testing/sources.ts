// What the tests beside this file notice, and what they do not, is known: try-mutants.test.ts holds the tool to it.

/** Its upper bound is not tried. */
export function isBetween(value: number, low: number, high: number): boolean {
  return value >= low && value <= high
}

/** A mutant of it never ends. */
export function countTo(end: number): number {
  let count = 0
  for (let left = end; left > 0; left--) count++
  return count
}

/** A mutant of it never answers. */
export function answer(call: (value: number) => void): void {
  setImmediate(() => call(1))
}

/** Called once for all tests. */
export function twice(value: number): number {
  return value * 2
}

/** Called by nobody. @public */
export function half(value: number): number {
  return value / 2
}

const names = new Set<string>()

/** A mutant of it leaves something behind. */
export function withName(name: string, call: () => number): void {
  if (names.has(name)) throw new Error("taken")
  names.add(name)
  if (call() > 0) names.delete(name)
}
