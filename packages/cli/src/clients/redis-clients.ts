import {
  createLimiter,
  InvalidOptionError,
  type Limiter,
  type LimiterOptions,
  type RequestFacts,
  type Rule,
  type StoreUnavailableError,
} from "@sluice/core"
import type { RuleUsage } from "@sluice/core/adapters"
import type { CounterKey, CounterState } from "@sluice/core/stores"
import { redisKey, redisStore } from "@sluice/redis"
import { ruleName } from "@sluice/rules"
import type { Cluster, Redis } from "ioredis"
import type { Io } from "../io.ts"
import { UsageError } from "../usage-error.ts"
import type {
  ClientAction,
  ClientsBackend,
  CountedClient,
  ShownClient,
  TopList,
  TopQuery,
  TopWait,
} from "./clients-backend.ts"
import { RedisBoard } from "./redis-board.ts"
import { connectRedis, disconnect, REPLY_MS } from "./redis-connection.ts"
import { serviceRules } from "./service-rules.ts"

/** Where an app counts, and how it names its counters. */
export interface RedisPlace {
  readonly url: string
  /** The option or variable that contains the URL. */
  readonly source: string
  readonly prefix: string | undefined
  /** The file with the rules of the app. Not read for a list or for `usage`. */
  readonly rules: string
  /** The anchor of the client, instead of the one in the file. */
  readonly anchor: string | undefined
  readonly naming: Pick<LimiterOptions<unknown>, "hashKeys" | "hashSecret" | "ipv6Prefix">
}

/** A client that was found, and the means to inspect and change it. */
interface ClientInRedis {
  readonly limiter: Limiter
  readonly request: RequestFacts
  /** Absent if the rule does not count the client, because the client is on its allow list. */
  readonly counter: CounterKey | undefined
  /** Absent if the rule cannot block the client. */
  readonly penalty: CounterKey | undefined
  readonly isShadow: boolean
  keyOf(counter: CounterKey): string
  /** Resolves with true if Redis contains one of the counters, and with undefined if that is unknown. */
  exists(counters: readonly (CounterKey | undefined)[]): Promise<boolean | undefined>
}

/** The clients of an app in its Redis. */
export class RedisClients implements ClientsBackend {
  readonly #place: RedisPlace
  readonly #io: Io
  #client: Redis | Cluster | undefined
  #board: RedisBoard | undefined

  constructor(place: RedisPlace, io: Io) {
    this.#place = place
    this.#io = io
  }

  show(named: CountedClient): Promise<ShownClient> {
    return this.#find(named, async ({ limiter, request, counter, isShadow: shadow, keyOf, exists }) => {
      const [{ checks }, counted] = await Promise.all([limiter.peek(request), exists([counter])])
      const { limit = 0, remaining = 0, refusal = "", retryAfterMs = 0, resetAfterMs = 0 } = checks[0] ?? {}
      const { granted = 0 } = checks[0] ?? {}
      return {
        ...(granted > 0 && { granted: `${granted}` }),
        ...{ limit: `${limit}`, remaining: `${remaining}`, resetAfterMs: `${resetAfterMs}` },
        ...{ refusal, shadow, degraded: false, allowedByList: counter === undefined },
        ...(refusal !== "" && Number.isFinite(retryAfterMs) && { retryAfterMs: `${retryAfterMs}` }),
        ...(counter !== undefined && { partition: counter.partition, key: keyOf(counter) }),
        ...(counted !== undefined && { counted }),
      }
    })
  }

  change(action: ClientAction, named: CountedClient, amount = ""): Promise<boolean> {
    return this.#find(named, async ({ limiter, request, counter, penalty, isShadow, exists }) => {
      if (action === "grant") {
        const [{ checks }, isFound] = await Promise.all([limiter.peek(request), exists([counter])])
        if (counter !== undefined) requireSamePeriod(counter, checks[0]?.counts, isFound)
        await limiter.grant(request, Number(amount))
        return true
      }
      if (isShadow && action !== "reset")
        throw new UsageError(`rule ${named.rule} is a shadow rule, so it cannot block a client`)
      if (action !== "block") {
        const isFound = await exists(action === "reset" ? [counter, penalty] : [penalty])
        await limiter[action](request)
        return isFound ?? true
      }
      if (counter === undefined) {
        throw new UsageError(
          `the client is on the allow list of rule ${named.rule}, so it cannot be blocked; change the rule`,
        )
      }
      await limiter.block(request, { for: amount })
      return true
    })
  }

  async top(query: TopQuery, wait?: TopWait): Promise<TopList> {
    this.#board ??= new RedisBoard(await this.#connect(wait?.signal), this.#place.prefix)
    return this.#board.top(query)
  }

  /**
   * Returns what clients of a service have used in their current periods, each by the name of a rule and the key of a
   * counter. Undefined for a client that the rules do not count, or not by calendar periods.
   */
  async usage(
    service: string,
    rules: readonly Rule[],
    clients: readonly { readonly rule: string; readonly client: string }[],
  ): Promise<readonly (RuleUsage | undefined)[]> {
    const limiter = this.#limiterOf(service, rules, await this.#connect())
    const all: (RuleUsage | undefined)[] = []
    try {
      for (let at = 0; at < clients.length; at += AT_A_TIME) {
        const some = clients.slice(at, at + AT_A_TIME)
        all.push(...(await Promise.all(some.map(({ rule, client }) => usageOf(limiter, rule, client)))))
      }
      return all
    } finally {
      await limiter.close()
    }
  }

  close(): void {
    if (this.#client !== undefined) disconnect(this.#client)
  }

  async #connect(signal?: AbortSignal): Promise<Redis | Cluster> {
    this.#client ??= await connectRedis(this.#place.url, this.#place.source, signal)
    return this.#client
  }

  #limiterOf(service: string, rules: readonly Rule[], client: Redis | Cluster): Limiter {
    const { prefix, naming } = this.#place
    return createLimiter({
      ...{ service, ...naming, rules, storeTimeoutMs: REPLY_MS, units: () => 1 },
      store: redisStore({ client, prefix, timeoutMs: REPLY_MS }),
      // A limiter's warnings are about the code of an app.
      logger: { warn() {}, error() {} },
    })
  }

  /** Calls `use` with a client. Rejects with StoreUnavailableError, also if `use` has ignored that Redis failed. */
  async #find<Result>(named: CountedClient, use: (found: ClientInRedis) => Promise<Result>): Promise<Result> {
    const { prefix, rules: file, anchor } = this.#place
    const inFile = await serviceRules(named.service, file, this.#io)
    requireRule(named, inFile, file)
    const rules = inFile.map((rule): Rule => {
      return anchor === undefined || ruleName(rule) !== named.rule ? rule : ({ ...rule, anchor } as Rule)
    })
    const redis = await this.#connect()
    const limiter = this.#limiterOf(named.service, rules, redis)
    let failure: StoreUnavailableError | undefined
    limiter.on("store-error", (error) => {
      failure = error
    })
    const keyOf = (counter: CounterKey): string => redisKey(counter, prefix)
    try {
      const request = limiter.client(named.rule, named.client)
      const [{ counter, penalty, shadow = false } = {}] = await limiter.explain(request)
      const result = await use({
        ...{ limiter, request, counter, penalty, isShadow: shadow, keyOf },
        exists: (counters) =>
          exists(
            redis,
            counters.flatMap((each) => (each === undefined ? [] : keyOf(each))),
          ),
      })
      if (failure !== undefined) throw failure
      return result
    } finally {
      await limiter.close()
    }
  }
}

/** Number of clients whose usage is read at the same time, so that each reply arrives before its timeout. */
const AT_A_TIME = 500

async function usageOf(limiter: Limiter, rule: string, client: string): Promise<RuleUsage | undefined> {
  try {
    return (await limiter.usage(limiter.client(rule, client)))[0]
  } catch (error) {
    // The file has no such rule, or the rule counts by other fields than the app's rule did.
    if (error instanceof InvalidOptionError) return undefined
    throw error
  }
}

/**
 * Throws UsageError if Redis counts the client in a period that is not one of the rule. A grant would end that period, so
 * the client's count would be lost.
 */
function requireSamePeriod(
  { policy: { periods } }: CounterKey,
  { startMs, current, previous }: CounterState = { startMs: 0, current: 0, previous: 0 },
  isFound: boolean | undefined,
): void {
  const isEmpty = current + previous === 0
  if (periods === undefined || (isEmpty ? isFound !== true : periods.includes(startMs))) return
  const beginning = isEmpty ? "" : ` (${new Date(startMs).toISOString()})`
  throw new UsageError(
    `Redis counts the client in a period that began on another day${beginning}: give the client's day with --anchor`,
  )
}

/** Throws UsageError if the rules of the client's service lack its rule. */
function requireRule({ service, rule }: CountedClient, rules: readonly Rule[], file: string): void {
  const names = rules.map(ruleName)
  if (names.includes(rule)) return
  const known = names.map((each) => JSON.stringify(each)).join(", ")
  const name = file === "-" ? "standard input" : file
  throw new UsageError(
    `Service ${JSON.stringify(service)} has no rule ${JSON.stringify(rule)} in ${name}: ${known === "" ? "it has no rules" : `its rules are ${known}`}.`,
  )
}

/** Resolves with whether one of the keys exists, or with undefined if that is unknown. */
async function exists(redis: Redis | Cluster, keys: readonly string[]): Promise<boolean | undefined> {
  try {
    // One command could not read keys of several slots of a cluster.
    const found = await Promise.all(keys.map((key) => redis.exists(key)))
    return found.includes(1)
  } catch {
    // The user may not be permitted to ask.
    return undefined
  }
}
