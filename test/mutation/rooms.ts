/** What is mutated together, and the tests that have to notice. Paths are from the root of the repository. */
export interface Room {
  /** Sources, tests beside them left out. */
  readonly mutate: readonly string[]
  readonly tests: readonly string[]
  /** Whether the tests start a Redis server. */
  readonly needsRedis: boolean
}

const CORE = "packages/core/src"

/** Those of what decides and of what asks it; a hundred thousand who acquire at once are about time alone. */
const LIMITER = [`${CORE}/{decision,request,http}/**/*.test.ts`, `${CORE}/limiter/**/!(acquire-many).test.ts`]

/** Those with servers that take moments. What takes seconds, and the contract, is left out: units tell the same at once. */
const REDIS = [
  "options",
  "commands-of",
  "ioredis-calls",
  "deny-cache",
  "clients",
  "forgetting",
  "cluster-refunds",
]

export const ROOMS: Readonly<Record<string, Room>> = {
  algorithms: {
    mutate: sourcesIn("algorithms"),
    tests: [
      `${CORE}/algorithms/**/*.test.ts`,
      "test/textbook-cases.test.ts",
      "test/refunds.test.ts",
      "test/algorithm-promises.test.ts",
      "test/sliding-log.test.ts",
    ],
    needsRedis: false,
  },
  decision: {
    mutate: sourcesIn("decision"),
    tests: [...LIMITER, "test/refunds.test.ts", "test/limiter-promises.test.ts"],
    needsRedis: false,
  },
  limiter: {
    mutate: sourcesIn("limiter"),
    tests: [...LIMITER, "test/limiter-promises.test.ts", "test/rule-changes.test.ts"],
    needsRedis: false,
  },
  request: {
    mutate: sourcesIn("request"),
    tests: [...LIMITER, "test/fields-by-libraries.test.ts"],
    needsRedis: false,
  },
  http: {
    mutate: [...sourcesIn("http"), `!${CORE}/http/respond.ts`],
    tests: [...LIMITER, "test/rule-changes.test.ts", "test/rule-match.test.ts"],
    needsRedis: false,
  },
  memory: {
    mutate: [...sourcesIn("stores/memory"), ...sourcesIn("stores/transactional"), `${CORE}/stores/*.ts`],
    tests: [
      `${CORE}/stores/{memory,transactional}/*.test.ts`,
      "test/memory-store.contract.test.ts",
      "test/transactional-store.contract.test.ts",
    ],
    needsRedis: false,
  },
  rules: {
    mutate: sourcesIn("rules", "rules/dynamodb"),
    tests: [`${CORE}/rules/!(dynamodb)/**/*.test.ts`, `${CORE}/rules/*.test.ts`, "test/rule-*.test.ts"],
    needsRedis: false,
  },
  adapters: {
    // What they share is tested through them.
    mutate: ["packages/{express,fastify,koa}/src/*.ts", `${CORE}/http/respond.ts`, "!**/*.{test,test-d}.ts"],
    tests: [
      "packages/{express,fastify,koa}/src/*.test.ts",
      `${CORE}/http/respond.test.ts`,
      "test/{express4,express5,fastify5,koa2,koa3,node-http,other-frameworks,http2-*}.test.ts",
      "test/{fields-by-libraries,rule-match,static-files}.test.ts",
    ],
    needsRedis: false,
  },
  redis: {
    mutate: sourcesIn("stores/redis"),
    tests: [`${CORE}/stores/redis/**/*.test.ts`, ...REDIS.map((name) => `test/redis/${name}.test.ts`)],
    needsRedis: true,
  },
}

function sourcesIn(folder: string, ...without: readonly string[]): readonly string[] {
  return [
    `${CORE}/${folder}/**/*.ts`,
    `!${CORE}/${folder}/**/*.{test,d}.ts`,
    `!${CORE}/${folder}/**/testing/**`,
    ...without.map((inner) => `!${CORE}/${inner}/**`),
  ]
}
