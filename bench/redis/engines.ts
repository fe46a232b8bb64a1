import { ENGINES, engineServer } from "../../test/engines/engines.ts"
import { startRedis } from "../../test/servers/redis-server.ts"
import { type Case, type Measured, measureCase } from "../load/measure.ts"
import { spreadOf } from "../report/statistics.ts"
import { printTable } from "../report/table.ts"
import { DECIDE, OURS, PEER } from "./cases.ts"

const CASE: Case = { workload: "uniform", inFlight: 64, names: [OURS, DECIDE, PEER] }

/** The samples of one engine. */
export interface EngineSamples {
  readonly engine: string
  readonly samples: Measured
}

/** Measures the same contenders on each engine of `pnpm test:engines`, one engine after the other. */
export async function measureEngines(rounds: number, forMs: number): Promise<readonly EngineSamples[]> {
  const measured: EngineSamples[] = []
  for (const engine of ENGINES) {
    const server = await startRedis({ binary: await engineServer(engine) })
    try {
      measured.push({ engine: engine.name, samples: await measureCase(server, CASE, { rounds, forMs }) })
    } finally {
      await server.stop()
    }
  }
  return measured
}

export function printEngines(measured: readonly EngineSamples[]): void {
  printTable(
    `${CASE.workload}, ${CASE.inFlight} in flight, by engine: decisions per second / CPU time of the server in us`,
    ["", ...measured.map(({ engine }) => engine)],
    CASE.names.map((name) => [
      name,
      ...measured.map(({ samples }) => {
        const ofName = samples.get(name) ?? []
        const perSecond = spreadOf(ofName.map((sample) => sample.perSecond)).median
        const serverUs = spreadOf(ofName.map((sample) => sample.redisUs)).median
        return `${perSecond.toFixed(0)} / ${serverUs.toFixed(2)}`
      }),
    ]),
  )
}
