import { uniformSequence, zipfSequence } from "../clients/sequence.ts"

export const WORKLOADS = {
  fill: "new keys: each call is the first of its client",
  uniform: "known keys, each as likely as any other",
  zipf: "known keys, the k-th most frequent with probability 1 / k",
  hot: "one key",
  refused: "a thousand keys that are over their limit of 1",
} as const

export type Workload = keyof typeof WORKLOADS

export const REFUSED_KEYS = 1_000

/** A limit that is never reached. */
export const NO_LIMIT = 1_000_000_000

/** Returns the sequence of clients whose requests are counted in a round. */
export function sequenceOf(workload: Workload, keys: number, calls: number, seed: number): Uint32Array {
  switch (workload) {
    case "fill":
      return new Uint32Array(keys).map((_, index) => index)
    case "uniform":
      return uniformSequence(keys, calls, seed)
    case "zipf":
      return zipfSequence(keys, calls, seed)
    case "hot":
      return new Uint32Array(calls)
    case "refused":
      return uniformSequence(REFUSED_KEYS, calls, seed)
  }
}
