import { type Case, measureCase, type Sample } from "../load/measure.ts"
import type { Workload } from "../load/workloads.ts"
import { spreadOf } from "../report/statistics.ts"
import type { Measurement, Quantity } from "./measurement.ts"
import type { Run } from "./settings.ts"

const IN_PROCESS = [
  "sluice take, in process",
  "sluice decide, in process",
  "rate-limiter-flexible, in process",
  "express-rate-limit, in process",
  "@fastify/rate-limit, in process",
  "koa-ratelimit, in process",
]
const ON_REDIS = [
  "sluice take",
  "sluice decide",
  "rate-limiter-flexible",
  "rate-limit-redis",
  "@fastify/rate-limit",
  "koa-ratelimit",
  "@upstash/ratelimit, sliding window",
]
const BLOCK = "rate-limiter-flexible, block"
/** Numbers of requests in flight. The requests are from 10,000 clients. */
const IN_FLIGHT = [1, 16, 64, 256]
/** The other workloads, which are measured with 64 requests in flight. */
const OTHERS: readonly Workload[] = ["hot", "zipf", "refused"]

type Figures = readonly (readonly [Quantity, (sample: Sample) => number])[]

/** The figures of each part. In memory no request waits, so latency is only the inverse of throughput. */
const FIGURES: Readonly<Record<"in-process" | "redis", Figures>> = {
  "in-process": [
    ["decisions a second", ({ perSecond }) => perSecond],
    ["Node CPU us", ({ nodeUs }) => nodeUs],
  ],
  redis: [
    ["decisions a second", ({ perSecond }) => perSecond],
    ["p50 ms", ({ p50Ms }) => p50Ms],
    ["p99 ms", ({ p99Ms }) => p99Ms],
    ["Node CPU us", ({ nodeUs }) => nodeUs],
    ["Redis CPU us", ({ redisUs }) => redisUs],
  ],
}

/** Measures the cost of counting one request in the memory of a process. */
export function measureInProcess(run: Run): Promise<Measurement[]> {
  return measureAll("in-process", run, casesOf(IN_PROCESS, IN_PROCESS), run.settings.forMs)
}

/** Measures the cost of counting one request through Redis. */
export function measureThroughRedis(run: Run): Promise<Measurement[]> {
  return measureAll("redis", run, casesOf(ON_REDIS, [...ON_REDIS, BLOCK]), 2 * run.settings.forMs)
}

function casesOf(names: readonly string[], whenRefused: readonly string[]): Case[] {
  return [
    ...IN_FLIGHT.map((inFlight): Case => ({ workload: "uniform", inFlight, names })),
    ...OTHERS.map((workload): Case => {
      return { workload, inFlight: 64, names: workload === "refused" ? whenRefused : names }
    }),
  ]
}

async function measureAll(
  part: keyof typeof FIGURES,
  { redis, settings: { rounds }, steadiness }: Run,
  cases: readonly Case[],
  forMs: number,
): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  for (const one of cases) {
    steadiness.look()
    for (const [contender, samples] of await measureCase(redis, one, { rounds, forMs })) {
      const { workload, inFlight } = one
      const of = { part, workload, inFlight, contender, isOurs: contender.startsWith("sluice") }
      for (const [quantity, figure] of FIGURES[part])
        measurements.push({ ...of, quantity, ...spreadOf(samples.map(figure)) })
    }
  }
  return measurements
}
