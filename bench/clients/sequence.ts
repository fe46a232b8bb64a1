/** Numbers from 0 to 1, the same for the same seed (a 32-bit xorshift generator). */
export function random(seed: number): () => number {
  let state = seed | 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 0x1_0000_0000
  }
}

/** `length` numbers below `count`, each as likely as any other. */
export function uniformSequence(count: number, length: number, seed: number): Uint32Array {
  const next = random(seed)
  return new Uint32Array(length).map(() => Math.floor(next() * count))
}

/** `length` numbers below `count`, one of them as often as the k-th most frequent is with probability 1 / k. */
export function zipfSequence(count: number, length: number, seed: number): Uint32Array {
  const next = random(seed)
  const upTo = new Float64Array(count)
  let sum = 0
  for (let rank = 0; rank < count; rank++) {
    sum += 1 / (rank + 1)
    upTo[rank] = sum
  }
  // A prime sets neighbours in frequency apart, so that the frequent ones are not the oldest.
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
