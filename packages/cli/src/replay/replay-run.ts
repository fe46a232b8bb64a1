import type { ClientAddressOptions, StorableRule } from "@sluice/core"
import { createReplay, type Replay, type ReplayVerdict } from "@sluice/core/replay"
import type { LogRecord } from "../logs/log.ts"
import type { ClientTable } from "./client-table.ts"
import { RuleStatistics, type Thresholds } from "./rule-statistics.ts"
import { TimelineCounts } from "./timeline.ts"
import { roomFor } from "./typed-arrays.ts"

/** What the replays of one command have in common. */
export interface RunContext {
  readonly service: string
  readonly address: ClientAddressOptions
  readonly thresholds: Thresholds
  /** All replays of a command number their clients in the same way. */
  readonly clients: ClientTable
}

/** The replay of one set of rules, with the counts of what it decided. */
export class ReplayRun {
  readonly replay: Replay
  readonly rules: readonly RuleStatistics[]
  readonly timeline: TimelineCounts
  seen = 0
  refused = 0
  /** Number of refused requests by client, where clients are addresses. */
  refusedOf: Uint32Array = new Uint32Array(0)
  readonly #byName: ReadonlyMap<string, number>
  readonly #clients: ClientTable
  #isAddress: Uint8Array = new Uint8Array(0)
  #addresses = 0
  #latestKey = ""
  #latestNumber: number

  constructor(rules: readonly StorableRule[], { service, address, thresholds, clients }: RunContext) {
    const readOf = (name: string) => (request: unknown) => (request as LogRecord).named?.[name]
    this.replay = createReplay({
      service,
      ...address,
      rules: rules.map((rule) => ({ field: "service", ...rule })),
      fields: readOf,
    })
    const windows = new Map(rules.map((rule, at) => [this.replay.rules[at]?.name, rule.window]))
    this.rules = this.replay.rules.map((rule) => {
      const { name, algorithm, windowMs, shadow } = rule
      const window = windows.get(name)
      const text = typeof window === "number" ? `${window} ms` : (window ?? "")
      return new RuleStatistics(
        {
          ...{ name, algorithm, windowMs, shadow, window: text },
          limit: rule.limit as number,
          countsService: rule.fields.length === 0,
        },
        thresholds,
      )
    })
    this.#byName = new Map(this.rules.map(({ rule }, at) => [rule.name, at]))
    this.timeline = new TimelineCounts(2 + this.rules.length)
    this.#clients = clients
    this.#latestNumber = clients.numberOf("")
  }

  /** Decides a request and counts the verdict. The result is valid until the next call. */
  offer(request: LogRecord): ReplayVerdict {
    const verdict = this.replay.offer(request)
    const { atMs } = request
    const { allowed, checks, refusedBy, shadowedBy, client } = verdict
    const step = this.timeline.stepOf(atMs)
    this.seen++
    if (client !== undefined) this.#countAddress(this.#numberOf(client))
    this.timeline.add(allowed ? 0 : 1, step)
    if (!allowed) {
      this.refused++
      if (client !== undefined) this.#countRefused(this.#numberOf(client))
    }
    for (let i = 0; i < checks.length; i++) {
      const { policy, partition, cost } = checks[i] as (typeof checks)[number]
      const at = this.#byName.get(policy.name) as number
      const rule = this.rules[at] as RuleStatistics
      // A rule also has an empty partition when it refuses a request because a field is missing.
      const isShared = partition === "@shared" || rule.rule.countsService
      const number = this.#numberOf(isShared || partition === "" ? (client ?? partition) : partition)
      const isRefused =
        (refusedBy.length > 0 && refusedBy.includes(policy.name)) ||
        (shadowedBy.length > 0 && shadowedBy.includes(policy.name))
      if (isRefused) this.timeline.add(2 + at, step)
      rule.add(number, atMs, cost, policy.limit, isRefused, isShared)
    }
    return verdict
  }

  /** Number of addresses that sent a request. */
  get addresses(): number {
    return this.#addresses
  }

  /** Number of addresses that were refused at least once. */
  get refusedClients(): number {
    return this.refusedOf.reduce((sum, refused) => sum + (refused > 0 ? 1 : 0), 0)
  }

  #countAddress(client: number): void {
    if (client >= this.#isAddress.length) this.#isAddress = roomFor(this.#isAddress, client)
    if (this.#isAddress[client] === 1) return
    this.#isAddress[client] = 1
    this.#addresses++
  }

  #countRefused(client: number): void {
    this.refusedOf = roomFor(this.refusedOf, client)
    this.refusedOf[client] = (this.refusedOf[client] as number) + 1
  }

  /** Returns the number of a client. Nearly always, all rules of a request count the same client. */
  #numberOf(client: string): number {
    if (client === this.#latestKey) return this.#latestNumber
    this.#latestKey = client
    this.#latestNumber = this.#clients.numberOf(client)
    return this.#latestNumber
  }
}
