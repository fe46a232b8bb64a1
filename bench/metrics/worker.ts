import { setImmediate } from "node:timers/promises"
import { createGuard } from "@sluice/core/adapters"
import { answerTasks } from "../contender-process.ts"
import { CONTENDERS, makeLimiter } from "./contenders.ts"

export interface Round {
  readonly rules: number
  readonly calls: number
}

const CLIENTS = Array.from({ length: 10_000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)

const measured = new Map<number, ReturnType<typeof setUp>>()

/** Returns the CPU nanoseconds per decision, including the collection of the metrics. */
answerTasks<Round>(async ({ rules, calls }): Promise<number> => {
  const { guard, collect } = measured.get(rules) ?? setUp(rules)
  // Wait for a turn of the event loop, because a server is also set up in an earlier turn than its first request.
  await setImmediate()
  const before = process.cpuUsage()
  for (let call = 0; call < calls; call++) {
    guard.check({ remoteAddress: CLIENTS[call % CLIENTS.length] }, {})
  }
  await collect()
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1_000) / calls
})

function setUp(rules: number) {
  const listen = CONTENDERS[process.argv[2] ?? ""]
  if (listen === undefined) throw new Error(`unknown contender: ${process.argv[2]}`)
  const limiter = makeLimiter(rules)
  const made = { guard: createGuard({ limiter }), collect: listen(limiter) }
  measured.set(rules, made)
  return made
}
