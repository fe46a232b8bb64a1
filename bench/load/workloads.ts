import { uniformSequence, zipfSequence } from "../clients/sequence.ts"

const HOUR_MS = 3_600_000

/** A limit that no round reaches, although it is as small as a realistic limit. */
const NO_LIMIT = 1_000_000

/** A limit per client that is too small for leases, and that the rounds of a benchmark do not reach. */
const CLIENT_LIMIT = 999

/** A workload: its description, the limit of every client, the number of clients and their distribution. */
export interface Described {
  readonly says: string
  readonly limit: number
  readonly windowMs: number
  readonly clients: number
  readonly spread: "uniform" | "zipf"
  /** Whether none, all or some of the requests must be refused. A round with any other result fails. */
  readonly refuses: "none" | "all" | "some"
  /** Whether each request has three limits: per second, per minute and per hour. */
  readonly isStacked: boolean
  /** A limit per second for the whole service, in addition to the client's limit. */
  readonly ofService?: number
}

const USUAL = {
  limit: NO_LIMIT,
  windowMs: HOUR_MS,
  spread: "uniform",
  refuses: "none",
  isStacked: false,
} as const

export const WORKLOADS = {
  uniform: { ...USUAL, says: "10,000 clients, each as likely as any other", clients: 10_000 },
  zipf: {
    ...USUAL,
    says: "a million clients, the k-th most frequent with probability 1 / k",
    clients: 1_000_000,
    spread: "zipf",
  },
  // The window allows ten million requests per second. A limit above a million would use the wide layout of counters in
  // Redis.
  hot: { ...USUAL, says: "one client, a limit that is never reached", clients: 1, windowMs: 100 },
  "hot, limited": {
    ...USUAL,
    says: "one client, 1,000 requests a second",
    clients: 1,
    limit: 1_000,
    windowMs: 1_000,
    refuses: "some",
  },
  service: {
    ...USUAL,
    says: "one counter, 1,000,000 requests a second",
    clients: 1,
    windowMs: 1_000,
    refuses: "some",
  },
  "service, large": {
    ...USUAL,
    says: "one counter, a limit above 2^20 that is never reached",
    clients: 1,
    limit: 2 ** 31,
    windowMs: 1_000,
  },
  "client and service": {
    ...USUAL,
    says: "10,000 clients, and one counter of all of them, 1,000,000 requests a second",
    limit: CLIENT_LIMIT,
    clients: 10_000,
    ofService: 1_000_000,
  },
  "client and service, large": {
    ...USUAL,
    says: "10,000 clients, and one counter of all of them, a limit above 2^20",
    limit: CLIENT_LIMIT,
    clients: 10_000,
    ofService: 2 ** 31,
  },
  refused: {
    ...USUAL,
    says: "a thousand clients that are over their limit of 1",
    clients: 1_000,
    limit: 1,
    // A week hardly ever ends during a run. If a week did end, each client would be admitted once more.
    windowMs: 7 * 24 * HOUR_MS,
    refuses: "all",
  },
  // The workloads of the memory benchmark: each client once, or once in each of two windows.
  tracked: { ...USUAL, says: "100,000 clients, each once", clients: 100_000 },
  "tracked, two windows": {
    ...USUAL,
    says: "100,000 clients, each once in each of two windows",
    clients: 100_000,
    windowMs: 4_000,
  },
  stacked: {
    ...USUAL,
    says: "10,000 clients, three limits on each request: a second's, a minute's, an hour's",
    clients: 10_000,
    isStacked: true,
  },
} as const satisfies Readonly<Record<string, Described>>

export type Workload = keyof typeof WORKLOADS

/** Returns the sequence of clients that a round repeats. */
export function sequenceOf(workload: Workload, length: number, seed: number): Uint32Array {
  const { clients, spread } = WORKLOADS[workload]
  return spread === "zipf" ? zipfSequence(clients, length, seed) : uniformSequence(clients, length, seed)
}
