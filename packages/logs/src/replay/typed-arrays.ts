type Counts = Uint8Array | Uint32Array | Float32Array | Float64Array

/** Returns the array if it contains the index; otherwise, a longer copy. New elements are 0. */
export function roomFor<Array extends Counts>(counts: Array, index: number): Array {
  if (index < counts.length) return counts
  const Kind = counts.constructor as new (length: number) => Array
  const grown = new Kind(Math.max(1024, 2 ** Math.ceil(Math.log2(index + 1))))
  grown.set(counts)
  return grown
}
