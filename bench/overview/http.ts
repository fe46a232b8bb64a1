import { CONTENDERS } from "../http/contenders.ts"
import { CONNECTIONS, measureHttp, type Round, type Sample } from "../http/measure.ts"
import { median, spreadOf } from "../report/statistics.ts"
import type { Measurement, Quantity } from "./measurement.ts"
import type { Run } from "./settings.ts"

const FIGURES: readonly (readonly [Quantity, keyof Sample])[] = [
  ["requests a second", "perSecond"],
  ["p99 ms", "p99Ms"],
  ["Node CPU us", "cpuUs"],
]

/** Measures whole requests of each framework: bare, with Sluice, and with its most popular limiter. */
export async function measureFrameworks({ settings, steadiness }: Run): Promise<Measurement[]> {
  steadiness.look()
  const measured = await measureHttp(
    CONTENDERS.filter(({ protection }) => ["bare", "sluice", "peer"].includes(protection)),
    { starts: 1, rounds: settings.httpRounds, seconds: 0.4 },
  )
  return [...measured].flatMap(([{ name, framework, protection, refuses, bare }, rounds]) =>
    FIGURES.map(([quantity, member]): Measurement => {
      // Each contender has its own process, which may be faster or slower by chance. Scale its figures by the bare
      // framework in the same process.
      const typical = median(bareRounds(bare).map(({ own }) => own[member]))
      const spread = spreadOf(
        rounds.map(({ own, bare: beside }) =>
          protection === "bare" ? own[member] : (own[member] / beside[member]) * typical,
        ),
      )
      const contender = name.slice(framework.length + 2).replace(/ (admits|refuses)$/, "")
      const workload = `${framework}, ${refuses ? "refuses" : "admits"}`
      const isOurs = protection === "sluice"
      return {
        part: "http",
        workload,
        inFlight: CONNECTIONS,
        contender,
        isOurs,
        quantity,
        ...spread,
      }
    }),
  )

  function bareRounds(bare: string): readonly Round[] {
    return [...measured].find(([contender]) => contender.name === bare)?.[1] ?? []
  }
}
