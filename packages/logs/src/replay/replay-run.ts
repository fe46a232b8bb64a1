import type { Refusal } from "@sluice/core"
import type { ClientAddressOptions } from "@sluice/core/adapters"
import {
  createReplay,
  type Replay,
  type ReplayOptions,
  type ReplayVerdict,
  type UnjudgedRule,
} from "@sluice/core/replay"
import type { StorableRule } from "@sluice/rules"
import type { LogRecord } from "../reading/log.ts"
import type { ClientTable } from "./client-table.ts"
import { RuleStatistics, type Thresholds } from "./rule-statistics.ts"
import { TimelineCounts } from "./timeline.ts"
import { roomFor } from "./typed-arrays.ts"

/** The settings that the replays of one command share. */
export interface RunContext {
  readonly service: string
  readonly address: ClientAddressOptions
  readonly thresholds: Thresholds
  /** Maximum number of counters of each replay. */
  readonly maxKeys: number
  /** The table of client numbers, which all replays of a command share. */
  readonly clients: ClientTable
}

/** The replay of one set of rules, with the counts of its decisions. */
export class ReplayRun {
  readonly replay: Replay
  readonly rules: readonly RuleStatistics[]
  readonly timeline: TimelineCounts
  seen = 0
  refused = 0
  /** Number of requests without an address. A rule by address counts all these requests as one client. */
  withoutAddress = 0
  /** Requests that have no amount of a unit that a rule counts, by the name of the unit. They take 1. */
  readonly withoutUnit: Map<string, number> = new Map()
  /** Number of refused requests by client. A request without an address counts for the partition of the first rule. */
  refusedOf: Uint32Array = new Uint32Array(0)
  readonly #byName: ReadonlyMap<string, number>
  readonly #clients: ClientTable
  #isClient: Uint8Array = new Uint8Array(0)
  #clientsSeen = 0
  #latestKey = ""
  #latestNumber: number

  constructor(
    rules: readonly StorableRule[],
    { service, address, thresholds, maxKeys, clients }: RunContext,
  ) {
    this.replay = createLogReplay({
      service,
      ...address,
      rules: rules.map((rule) => ({ field: "service", ...rule })),
      maxKeys,
      units: (unit) => (request) => this.#amountIn(request as LogRecord, unit),
    })
    this.rules = this.replay.rules.map((rule) => new RuleStatistics(rule, thresholds))
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
    if (client === undefined) this.withoutAddress++
    if (!allowed) this.refused++
    this.timeline.add(allowed ? 0 : 1, step)
    this.#countClient(this.#numberOf(client ?? checks[0]?.partition ?? ""), !allowed)
    const hasRefusals = refusedBy.length > 0 || shadowedBy.length > 0
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as (typeof checks)[number]
      const { policy, partition } = check
      const at = this.#byName.get(policy.name) as number
      const statistics = this.rules[at] as RuleStatistics
      const isShared = partition === "@shared" || statistics.rule.fields.length === 0
      // The partition is also empty when a rule refuses a request because a field is missing.
      const number = this.#numberOf(isShared || partition === "" ? (client ?? partition) : partition)
      const refusal = hasRefusals ? refusalOf(verdict, policy.name) : undefined
      if (refusal !== undefined) this.timeline.add(2 + at, step)
      statistics.add(number, atMs, check, refusal, isShared)
    }
    return verdict
  }

  /** Number of clients that sent a request. */
  get clientsSeen(): number {
    return this.#clientsSeen
  }

  /** Number of clients that were refused at least once. */
  get refusedClients(): number {
    return this.refusedOf.reduce((sum, refused) => sum + (refused > 0 ? 1 : 0), 0)
  }

  /** Returns the fields that a rule reads but all requests lack. */
  missingOf(name: string): readonly string[] {
    return this.#unjudged(name).flatMap(({ field, requests }) => (requests === this.seen ? field : []))
  }

  /** Returns the fields that a rule reads but some requests lack, each with the number of these requests. */
  partlyMissingOf(name: string): readonly UnjudgedRule[] {
    return this.#unjudged(name).filter(({ requests }) => requests < this.seen)
  }

  /** True if a rule counts by address, and the log may contain addresses. */
  get countsAddresses(): boolean {
    return this.rules.some(({ rule }) => rule.fields.includes("ip") && this.missingOf(rule.name).length === 0)
  }

  /** Returns how many of a unit a request takes: the value of the field with that name. */
  #amountIn({ named }: LogRecord, unit: string): number {
    const amount = Number(named?.[unit])
    if (Number.isSafeInteger(amount) && amount >= 0) return amount
    this.withoutUnit.set(unit, (this.withoutUnit.get(unit) ?? 0) + 1)
    return 1
  }

  #unjudged(name: string): readonly UnjudgedRule[] {
    return this.replay.notJudged.filter(({ rule }) => rule === name)
  }

  #countClient(client: number, isRefused: boolean): void {
    if (client >= this.#isClient.length) {
      this.#isClient = roomFor(this.#isClient, client)
      this.refusedOf = roomFor(this.refusedOf, client)
    }
    if (this.#isClient[client] === 0) {
      this.#isClient[client] = 1
      this.#clientsSeen++
    }
    if (isRefused) this.refusedOf[client] = (this.refusedOf[client] as number) + 1
  }

  /**
   * Returns the number of a client. Remembers the latest client, because nearly always, all rules of a request count
   * the same client.
   */
  #numberOf(client: string): number {
    if (client === this.#latestKey) return this.#latestNumber
    this.#latestKey = client
    this.#latestNumber = this.#clients.numberOf(client)
    return this.#latestNumber
  }
}

/** Creates a replay for records of logs. */
export function createLogReplay(options: Omit<ReplayOptions, "fields">): Replay {
  return createReplay({ ...options, fields: (name) => (request) => (request as LogRecord).named?.[name] })
}

/** Returns why a rule refused or would have refused a request, undefined if the rule admitted the request. */
function refusalOf(verdict: ReplayVerdict, name: string): Refusal | undefined {
  if (!verdict.refusedBy.includes(name) && !verdict.shadowedBy.includes(name)) return undefined
  return verdict.decision().checks.find(({ policy }) => policy === name)?.refusal
}
