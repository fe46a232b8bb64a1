/** What is mutated together, and the tests that have to notice. Paths are from the root of the repository. */
export interface Room {
  /** Sources, tests beside them left out. */
  readonly mutate: readonly string[]
  /** In the order in which they run: those that a pattern finds first, and what takes long last. */
  readonly tests: readonly string[]
  /** Whether the tests start a Redis server. */
  readonly needsRedis: boolean
}

const CORE = "packages/core/src"

/**
 * Tests of a room are its own and those of what is built on it, as far as they are quick: of a suite that starts servers
 * each mutant would pay for the start.
 */
export const ROOMS: Readonly<Record<string, Room>> = {
  algorithms: {
    mutate: sourcesIn("algorithms"),
    tests: [
      `${CORE}/algorithms/**/*.test.ts`,
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
    tests: [
      `${CORE}/limiter/**/*.test.ts`,
      `${CORE}/http/**/*.test.ts`,
      "test/limiter-promises.test.ts",
      "test/refunds.test.ts",
    ],
    needsRedis: false,
  },
  http: {
    mutate: sourcesIn("http"),
    tests: [`${CORE}/http/**/*.test.ts`, "test/rule-match.test.ts", "test/rule-changes.test.ts"],
    needsRedis: false,
  },
  memory: {
    mutate: [...sourcesIn("stores/memory"), `${CORE}/stores/*.ts`],
    tests: [`${CORE}/stores/memory/**/*.test.ts`, "test/memory-store.contract.test.ts"],
    needsRedis: false,
  },
  redis: {
    mutate: sourcesIn("stores/redis"),
    tests: [
      `${CORE}/stores/redis/**/*.test.ts`,
      ...["clients", "commands-of", "deny-cache", "fleet", "options", "redis-store.contract"].map(
        (name) => `test/redis/${name}.test.ts`,
      ),
    ],
    needsRedis: true,
  },
}

function sourcesIn(folder: string): readonly string[] {
  return [
    `${CORE}/${folder}/**/*.ts`,
    `!${CORE}/${folder}/**/*.test.ts`,
    `!${CORE}/${folder}/**/testing/**`,
    `!${CORE}/${folder}/**/*.d.ts`,
  ]
}
