import { startContender } from "../contender-process.ts"
import { callsSince, type RedisServer, usageOf } from "../redis/server.ts"
import { pairedRatios, rotated, type Spread, spreadOf } from "../report/statistics.ts"
import { CONTENDERS } from "./contenders.ts"
import { NOBODY } from "./names.ts"
import type { Sample as NodeSample, Task } from "./worker.ts"
import { WORKLOADS, type Workload } from "./workloads.ts"

/** A workload with so many requests in flight, and who is measured in it. */
export interface Case {
  readonly workload: Workload
  readonly inFlight: number
  readonly names: readonly string[]
}

/** One round of a contender; Redis' figures are by the decision too. */
export interface Sample extends NodeSample {
  readonly redisUs: number
  /** Commands that it sent. */
  readonly calls: number
  /** Commands that Redis ran, by whatever script or connection. */
  readonly commands: number
}

/** What was measured in a case, by contender; a list has the rounds in order, the same for all. */
export type Measured = ReadonlyMap<string, readonly Sample[]>

/** New processes for each case; a round that is not kept comes first. */
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
        // Each client uses up what it has, and is known to be refused.
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

/** A figure of one contender in comparison with another's, round by round. */
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

/** Decisions a second where Redis has no part in them: less what making the keys took. */
export function netPerSecond({ perSecond, keyUs }: Sample): number {
  return 1e6 / (1e6 / perSecond - keyUs)
}
