/** Sources that are mutated together, and the tests that must notice. Paths are from the root of the repository. */
export interface Room {
  /** The sources, without the tests in the same folders. */
  readonly mutate: readonly string[]
  readonly tests: readonly string[]
  /** True if the tests start a Redis server. */
  readonly needsRedis: boolean
}

const CORE = "packages/core/src"

/**
 * The tests of decisions and of their callers. The test with a hundred thousand waiters is omitted, because it only
 * measures time.
 */
const LIMITER = [`${CORE}/{decision,request,http}/**/*.test.ts`, `${CORE}/limiter/**/!(acquire-many).test.ts`]

/**
 * Code that adapters share. The tests of the adapters test this code, because its behavior is only visible with a
 * framework.
 */
const IN_ADAPTERS = [
  `${CORE}/http/respond.ts`,
  `${CORE}/http/refusal-error.ts`,
  `${CORE}/http/guard/late-place.ts`,
  `${CORE}/http/guard/mount-order.ts`,
]

/**
 * The quick tests with servers. Slow tests and the contract are omitted, because unit tests notice the same mutants
 * sooner.
 */
const REDIS = [
  "options",
  "commands-of",
  "ioredis-calls",
  "deny-cache",
  "clients",
  "forgetting",
  "cluster-refunds",
  "redis-over-http",
]

export const ROOMS: Readonly<Record<string, Room>> = {
  algorithms: {
    mutate: sourcesIn("algorithms"),
    tests: [
      `${CORE}/algorithms/**/*.test.ts`,
      "test/worked-examples/{windows,clients}.test.ts",
      "test/refunds.test.ts",
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
    tests: [
      ...LIMITER,
      "test/{limiter-promises,rule-changes,async-options,copies,proxy-settings,rules-without-field}.test.ts",
      "test/wrong-inputs/hints.test.ts",
    ],
    needsRedis: false,
  },
  request: {
    mutate: sourcesIn("request"),
    tests: [...LIMITER, "test/fields-by-libraries.test.ts"],
    needsRedis: false,
  },
  http: {
    mutate: [...sourcesIn("http"), ...IN_ADAPTERS.map((path) => `!${path}`)],
    tests: [...LIMITER, "test/rule-changes.test.ts", "test/rule-match.test.ts"],
    needsRedis: false,
  },
  memory: {
    mutate: [
      ...sourcesIn("stores/memory"),
      ...sourcesIn("stores/transactional"),
      `${CORE}/stores/*.ts`,
      `!${CORE}/stores/*.test.ts`,
    ],
    tests: [
      `${CORE}/stores/*.test.ts`,
      `${CORE}/stores/{memory,transactional}/*.test.ts`,
      `${CORE}/http/corrupt-answers.test.ts`,
      `${CORE}/limiter/store-failure.test.ts`,
      "test/memory-store.contract.test.ts",
      "test/transactional-store.contract.test.ts",
      "test/transactional-store.test.ts",
    ],
    needsRedis: false,
  },
  rules: {
    mutate: [...sourcesIn("rules"), "packages/rules/src/**/*.ts", "!**/*.{test,d}.ts"],
    tests: [`${CORE}/rules/**/*.test.ts`, "packages/rules/src/**/*.test.ts", "test/rule-*.test.ts"],
    needsRedis: false,
  },
  adapters: {
    mutate: [
      "packages/{express,fastify,fetch,koa,nestjs}/src/*.ts",
      ...IN_ADAPTERS,
      "!**/*.{test,test-d}.ts",
    ],
    tests: [
      "packages/{express,fastify,fetch,koa,nestjs}/src/*.test.ts",
      `${CORE}/http/{respond,refusal-error,guard/late-place,guard/mount-order}.test.ts`,
      "test/{express4,express5,fastify5,hono,koa2,koa3,nest,nest-contexts,node-http,other-frameworks,http2-*}.test.ts",
      "test/{express-mount-order,koa-mount-order,refusals-as-errors}.test.ts",
      "test/{fields-by-libraries,rule-match,static-files}.test.ts",
    ],
    needsRedis: false,
  },
  redis: {
    mutate: ["packages/redis/src/**/*.ts", "!**/*.{test,d}.ts", "!**/testing/**"],
    tests: ["packages/redis/src/**/*.test.ts", ...REDIS.map((name) => `test/redis/${name}.test.ts`)],
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
