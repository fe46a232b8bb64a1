import { startContender } from "../contender-process.ts"
import { callsSince, type RedisServer, usageOf } from "../redis/server.ts"
import { pairedRatios, rotated, type Spread, spreadOf } from "../report/statistics.ts"
import { CONTENDERS } from "./contenders.ts"
import { NOBODY } from "./names.ts"
import type { Sample as NodeSample, Task } from "./worker.ts"
import { WORKLOADS, type Workload } from "./workloads.ts"

/** A workload, the number of requests in flight, and the contenders. */
export interface Case {
  readonly workload: Workload
  readonly inFlight: number
  readonly names: readonly string[]
}

/** One round of a contender. All figures of Redis are per decision. */
export interface Sample extends NodeSample {
  readonly redisUs: number
  /** Commands that the contender sent. */
  readonly calls: number
  /** Commands that Redis ran, from scripts and from all connections. */
  readonly commands: number
}

/** The samples of a case by contender. Each list contains the same rounds in the same order. */
export type Measured = ReadonlyMap<string, readonly Sample[]>

/** Measures a case in new processes. The first round is a warm-up. */
export async function measureCase(
  server: RedisServer,
  { workload, inFlight, names }: Case,
  { rounds, forMs }: { readonly rounds: number; readonly forMs: number },
): Promise<Measured> {
  await server.command("FLUSHALL", "SYNC")
  const processes = names.map((name) => startContender(new URL("./worker.ts", import.meta.url), name))
  const samples = new Map<string, Sample[]>(names.map((name) => [name, []]))
  const { port } = server
  const { refuses, clients } = WORKLOADS[workload]
  try {
    for (let round = 0; round <= rounds; round++) {
      for (const contender of rotated(processes, round)) {
        // Each client uses up its limit, and is then refused once, so that caches contain the refusal.
        for (let time = 0; refuses === "all" && time < 2; time++)
          await contender.ask({ port, workload, inFlight, fill: [0, clients] } satisfies Task)
        const before = await usageOf(server)
        const task: Task = { port, workload, inFlight, forMs, seed: round + 1 }
        const sample = await contender.ask<NodeSample>(task)
        const after = await usageOf(server)
        const { decisions, refused, failed } = sample
        const isNobody = contender.name === NOBODY
        const expected = refuses === "none" ? 0 : decisions - failed
        if (refuses !== "some" && !isNobody && refused !== expected)
          throw new Error(`${contender.name}, ${workload}: ${expected} should be refused, were ${refused}`)
        if (round === 0) continue
        samples.get(contender.name)?.push({
          ...sample,
          redisUs: (after.cpuUs - before.cpuUs) / decisions,
          calls: callsSince(before, after, CONTENDERS[contender.name]?.sends) / decisions,
          commands: callsSince(before, after) / decisions,
        })
      }
    }
  } finally {
    await Promise.all(processes.map((one) => one.stop()))
  }
  return samples
}

/** Returns the ratio of one contender's figure to another's for each round. */
export function compare(
  measured: Measured,
  name: string,
  other: string,
  figure: (sample: Sample) => number,
): Spread {
  return spreadOf(
    pairedRatios((measured.get(name) ?? []).map(figure), (measured.get(other) ?? []).map(figure)),
  )
}

/**
 * Returns the decisions per second without the time for creating the keys. The result is meaningful only if no
 * decision waits for Redis.
 */
export function netPerSecond({ perSecond, keyUs }: Sample): number {
  return 1e6 / (1e6 / perSecond - keyUs)
}
