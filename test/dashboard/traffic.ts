/** Returns one of 16 million addresses. */
export function addressOf(nth: number): string {
  return `10.${nth >> 16}.${(nth >> 8) & 255}.${nth & 255}`
}

/** The client of each request, for several kinds of traffic of 20,000 requests. */
export const TRAFFIC: Readonly<Record<string, (nth: number) => string>> = {
  // The kth of 22,000 clients sends in proportion to 1 / k.
  "Zipf traffic": (nth) => addressOf(Math.floor(Math.exp(((nth * 7919) % 20_000) / 2_000))),
  "an attack by many clients": (nth) => addressOf(nth % 5 === 0 ? 100_000 + (nth % 3) : nth % 4_001),
}

/** The number of requests of each traffic. */
export const REQUESTS = 20_000

/** Returns the sum of all counts. */
export function total(counts: Iterable<number>): number {
  let sum = 0
  for (const count of counts) sum += count
  return sum
}
