import { createLimiter, memoryStore } from "@sluice/core"
import { MemoryStore } from "express-rate-limit"
import { RateLimiterMemory } from "rate-limiter-flexible"
import type { Contender, ContenderKind, Outcome, Setup } from "../load/contender.ts"
import { judgeDecision, judgeRejection, policyOf } from "../load/judging.ts"
import { FastifyLocalStore, incremented, KoaMemoryLimiter } from "../load/peer-stores.ts"

const FAILED = (): Outcome => "failed"
const judgeTruth = (isGranted: boolean): Outcome => (isGranted ? "granted" : "refused")

/** Each contender that counts in the memory of its process. Each contender checks one limit, without a framework. */
export const IN_PROCESS: Readonly<Record<string, ContenderKind>> = {
  "sluice take, in process": {
    sends: [],
    async create(setup) {
      const store = memoryStore()
      const policy = policyOf(onlyLimit(setup), 0)
      return {
        count: (key) => store.take([{ policy, partition: key, cost: 1, shadow: false }])?.granted === true,
        judge: judgeTruth,
        judgeError: FAILED,
      } satisfies Contender<boolean>
    },
  },
  "sluice decide, in process": {
    sends: [],
    async create(setup) {
      const { limit, windowMs } = onlyLimit(setup)
      const limiter = createLimiter({ limit, window: `${windowMs} ms` })
      return {
        count: (key) => limiter.decide({ remoteAddress: key }),
        judge: judgeDecision,
        judgeError: FAILED,
      } satisfies Contender<Awaited<ReturnType<typeof limiter.decide>>>
    },
  },
  "rate-limiter-flexible, in process": {
    sends: [],
    async create(setup) {
      const { limit, windowMs } = onlyLimit(setup)
      const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1_000 })
      return { count: (key) => limiter.consume(key), judge: () => "granted", judgeError: judgeRejection }
    },
  },
  "express-rate-limit, in process": {
    sends: [],
    async create(setup) {
      const { limit, windowMs } = onlyLimit(setup)
      const store = new MemoryStore()
      // The middleware passes all of its options to the store, which reads only this option.
      store.init({ windowMs } as Parameters<MemoryStore["init"]>[0])
      return {
        // The middleware compares the store's count with the limit.
        count: async (key) => (await store.increment(key)).totalHits <= limit,
        judge: judgeTruth,
        judgeError: FAILED,
      } satisfies Contender<boolean>
    },
  },
  "@fastify/rate-limit, in process": {
    sends: [],
    async create(setup) {
      const { limit, windowMs } = onlyLimit(setup)
      const store = new FastifyLocalStore()
      return {
        count: (key) => incremented(store, key, windowMs, limit),
        judge: judgeTruth,
        judgeError: FAILED,
      } satisfies Contender<boolean>
    },
  },
  "koa-ratelimit, in process": {
    sends: [],
    async create(setup) {
      const { limit: max, windowMs: duration } = onlyLimit(setup)
      const db = new Map()
      return {
        count: async (id) => (await new KoaMemoryLimiter({ id, db, max, duration }).get()).remaining > 0,
        judge: judgeTruth,
        judgeError: FAILED,
      } satisfies Contender<boolean>
    },
  },
}

function onlyLimit({ limits: [first] }: Setup): Setup["limits"][number] {
  if (first === undefined) throw new Error("There is no limit")
  return first
}
