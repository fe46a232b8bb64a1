import { createLimiter, type Limiter, memoryStore, type Rule } from "@sluice/core"
import { median } from "../report/statistics.ts"

interface Request {
  readonly method: string
  readonly url: string
  readonly tenant: string
}

/** Ways in which rules of the same set may differ. Exactly one rule matches each request. */
export const DIFFERENCES: Readonly<Record<string, (index: number) => NonNullable<Rule["match"]>>> = {
  "by path": (index) => ({ methods: ["GET"], path: `/api/v1/resource-${index}/:id` }),
  "by the value of a field": (index) => ({ fields: { tenant: [`tenant-${index}`] } }),
}

const DECISIONS = 20_000

/** Returns the CPU microseconds of a decision among `count` rules, as the median of the rounds. */
export async function decisionUs(
  matchOf: (index: number) => NonNullable<Rule["match"]>,
  count: number,
  rounds: number,
): Promise<number> {
  const rules = Array.from({ length: count }, (_, index): Rule => {
    return { name: `rule-${index}`, limit: 1_000_000, window: "1 day", field: "ip", match: matchOf(index) }
  })
  const limiter = createLimiter<Request & { readonly remoteAddress: string }>({
    rules,
    store: memoryStore(),
    fields: { tenant: ({ tenant }) => tenant },
  })
  // Warm up, so that the hot path and each rule are compiled.
  await decide(limiter, count)
  const tookUs: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { user, system } = process.cpuUsage()
    await decide(limiter, count)
    const after = process.cpuUsage()
    tookUs.push((after.user + after.system - user - system) / DECISIONS)
  }
  await limiter.close()
  return median(tookUs)
}

async function decide(
  limiter: Limiter<Request & { readonly remoteAddress: string }>,
  count: number,
): Promise<void> {
  for (let i = 0; i < DECISIONS; i++) {
    const rule = i % count
    const decision = await limiter.decide({
      method: "GET",
      url: `/api/v1/resource-${rule}/7`,
      tenant: `tenant-${rule}`,
      remoteAddress: `10.0.${i % 7}.1`,
    })
    if (decision.policy !== `rule-${rule}`) throw new Error(`rule ${decision.policy} has decided`)
  }
}
