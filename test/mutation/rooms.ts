/** What is mutated together, and the tests that have to notice. Paths are from the root of the repository. */
export interface Room {
  /** Sources, tests beside them left out. */
  readonly mutate: readonly string[]
  /** Tests that take a moment: every mutant meets them. */
  readonly quick: readonly string[]
  /**
   * Tests that take seconds, as they play random traces or start servers: for mutants that the quick ones have left, in this
   * order.
   */
  readonly thorough: readonly string[]
  /** Whether the tests start a Redis server. */
  readonly needsRedis: boolean
}

const CORE = "packages/core/src"

export const ROOMS: Readonly<Record<string, Room>> = {
  algorithms: {
    mutate: sourcesIn("algorithms"),
    quick: [`${CORE}/algorithms/!(promises).test.ts`],
    thorough: [
      "test/textbook-cases.test.ts",
      "test/refunds.test.ts",
      "test/algorithm-promises.test.ts",
      `${CORE}/algorithms/promises.test.ts`,
      "test/sliding-log.test.ts",
    ],
    needsRedis: false,
  },
  limiter: {
    mutate: sourcesIn("limiter"),
    quick: [
      `${CORE}/limiter/**/*.test.ts`,
      `${CORE}/http/!(acquire|acquire-many|acquire-order|take-up-to).test.ts`,
    ],
    thorough: [
      ...["take-up-to", "acquire-order", "acquire"].map((name) => `${CORE}/http/${name}.test.ts`),
      "test/refunds.test.ts",
      "test/limiter-promises.test.ts",
    ],
    needsRedis: false,
  },
  http: {
    mutate: sourcesIn("http"),
    quick: [`${CORE}/http/**/!(acquire|acquire-many|acquire-order|take-up-to).test.ts`],
    thorough: [
      ...["take-up-to", "acquire-order", "acquire"].map((name) => `${CORE}/http/${name}.test.ts`),
      "test/rule-changes.test.ts",
      "test/rule-match.test.ts",
    ],
    needsRedis: false,
  },
  memory: {
    mutate: [...sourcesIn("stores/memory"), `${CORE}/stores/*.ts`],
    quick: [`${CORE}/stores/memory/!(counter-table|segment).test.ts`],
    thorough: [
      ...["segment", "counter-table"].map((name) => `${CORE}/stores/memory/${name}.test.ts`),
      "test/memory-store.contract.test.ts",
    ],
    needsRedis: false,
  },
  redis: {
    mutate: sourcesIn("stores/redis"),
    quick: [`${CORE}/stores/redis/**/*.test.ts`],
    thorough: ["options", "commands-of", "fleet", "deny-cache", "clients", "redis-store.contract"].map(
      (name) => `test/redis/${name}.test.ts`,
    ),
    needsRedis: true,
  },
}

function sourcesIn(folder: string): readonly string[] {
  return [
    `${CORE}/${folder}/**/*.ts`,
    `!${CORE}/${folder}/**/*.{test,d}.ts`,
    `!${CORE}/${folder}/**/testing/**`,
  ]
}
