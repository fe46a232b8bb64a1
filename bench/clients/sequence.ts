/** Returns a 32-bit xorshift generator of numbers from 0 to 1. The same seed produces the same numbers. */
export function random(seed: number): () => number {
  let state = seed | 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 0x1_0000_0000
  }
}

/** Returns `length` numbers below `count`, all equally likely. */
export function uniformSequence(count: number, length: number, seed: number): Uint32Array {
  const next = random(seed)
  return new Uint32Array(length).map(() => Math.floor(next() * count))
}

/** Returns `length` numbers below `count`. The k-th most frequent number has a probability proportional to 1 / k. */
export function zipfSequence(count: number, length: number, seed: number): Uint32Array {
  const next = random(seed)
  const upTo = new Float64Array(count)
  let sum = 0
  for (let rank = 0; rank < count; rank++) {
    sum += 1 / (rank + 1)
    upTo[rank] = sum
  }
  // Multiplying by a prime spreads numbers of similar frequency, so that the frequent ones are not the oldest.
  return new Uint32Array(length).map(() => (firstAbove(upTo, next() * sum) * 7919) % count)
}

function firstAbove(sorted: Float64Array, value: number): number {
  let low = 0
  let high = sorted.length - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] as number) > value) high = middle
    else low = middle + 1
  }
  return low
}
