import type { Policy } from "@sluice/core/stores"

/** The limit and window of a rule, and the other options of its algorithm. */
export interface Size {
  readonly limit: number
  readonly windowMs: number
  /** Number of sub-windows, for the algorithms that use sub-windows. Default: 60. */
  readonly buckets?: number
  /** Capacity of a bucket in units. Default: the limit. */
  readonly burst?: number
}

/** A guaranteed maximum for the units that are admitted in a stretch of time. */
export interface Bound {
  /** Description of the stretch. */
  readonly of: string
  /** Description of the guarantee. */
  readonly says: string
  /** Returns the length of the stretch, as a number of consecutive whole milliseconds. */
  lengthMs(size: Required<Size>): number
  /** Whether the bound covers only stretches that begin at multiples of their length since the epoch. */
  readonly isAligned: boolean
  most(size: Required<Size>): number
}

/** An algorithm with its configuration. The benchmarks compare all kinds. */
export interface Kind {
  readonly name: string
  readonly members: Pick<Policy, "algorithm"> & Partial<Pick<Policy, "align" | "refill">>
  readonly takes: readonly ("buckets" | "burst")[]
  /** The first bound covers the whole window. */
  readonly bounds: readonly Bound[]
}

const DEFAULT_BUCKETS = 60

const inAnyWindow = (says: string, most: Bound["most"]): Bound => ({
  of: "any W",
  says,
  lengthMs: ({ windowMs }) => windowMs,
  isAligned: false,
  most,
})
const TWICE: Bound = inAnyWindow("2 L", ({ limit }) => 2 * limit)
const ONCE: Bound = inAnyWindow("L", ({ limit }) => limit)
const BURST_MORE: Bound = inAnyWindow("burst + L", ({ limit, burst }) => burst + limit)
const ALIGNED: Bound = { ...ONCE, of: "W aligned to the epoch", isAligned: true }

/** Each algorithm with the bounds that docs/reference/algorithms.md guarantees. */
export const KINDS: readonly Kind[] = [
  {
    name: "sliding-window",
    members: { algorithm: "sliding-window" },
    takes: [],
    bounds: [
      TWICE,
      ALIGNED,
      {
        of: "a burst of W / L",
        says: "L + 1",
        lengthMs: ({ limit, windowMs }) => Math.floor(windowMs / limit),
        isAligned: false,
        most: ({ limit }) => limit + 1,
      },
    ],
  },
  {
    name: "sliding-window, buckets",
    members: { algorithm: "sliding-window" },
    takes: ["buckets"],
    bounds: [
      TWICE,
      {
        of: "any W (1 - 1 / n)",
        says: "L",
        lengthMs: ({ windowMs, buckets }) => windowMs - Math.ceil(windowMs / buckets),
        isAligned: false,
        most: ({ limit }) => limit,
      },
    ],
  },
  {
    name: "sliding-window-strict",
    members: { algorithm: "sliding-window-strict" },
    takes: ["buckets"],
    bounds: [ONCE],
  },
  { name: "sliding-log", members: { algorithm: "sliding-log" }, takes: [], bounds: [ONCE] },
  { name: "fixed-window", members: { algorithm: "fixed-window" }, takes: [], bounds: [TWICE, ALIGNED] },
  {
    name: "fixed-window, first-hit",
    members: { algorithm: "fixed-window", align: "first-hit" },
    takes: [],
    bounds: [TWICE],
  },
  { name: "token-bucket", members: { algorithm: "token-bucket" }, takes: ["burst"], bounds: [BURST_MORE] },
  {
    name: "token-bucket, periodic",
    members: { algorithm: "token-bucket", refill: "periodic" },
    takes: ["burst"],
    bounds: [BURST_MORE],
  },
  { name: "leaky-bucket", members: { algorithm: "leaky-bucket" }, takes: ["burst"], bounds: [BURST_MORE] },
]

/** Returns the kind with that name. Throws if no kind has that name. */
export function kindOf(name: string): Kind {
  const kind = KINDS.find((one) => one.name === name)
  if (kind === undefined) throw new Error(`unknown kind of counter: ${name}`)
  return kind
}

/** Returns the size with every default filled in. `burst` is the limit if the kind does not support bursts. */
export function wholeSize({ takes }: Kind, size: Size): Required<Size> {
  const { limit, windowMs, buckets = DEFAULT_BUCKETS, burst = limit } = size
  return { limit, windowMs, buckets, burst: takes.includes("burst") ? burst : limit }
}

export function policyOf(kind: Kind, size: Size): Policy {
  const { limit, windowMs, buckets, burst } = wholeSize(kind, size)
  return {
    name: "measured",
    counter: "k3JxW0aQ7rBn5TzE",
    limit,
    windowMs,
    align: "epoch",
    ...kind.members,
    ...(kind.takes.includes("buckets") ? { buckets } : {}),
    ...(kind.takes.includes("burst") ? { burst } : {}),
  }
}
