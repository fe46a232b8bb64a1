import type { Step } from "../pairs.ts"
import { type Edit, edited } from "../readme-examples.ts"
import { as, times } from "../requests.ts"

/** A block of the README, and the changes that a user makes to it. */
export interface Example {
  /** A string that only this block contains. */
  readonly has: string
  /** Strings that occur several times, and are replaced everywhere. */
  readonly everywhere?: readonly (readonly [old: string, replacement: string])[]
  readonly edits: readonly Edit[]
  readonly steps: readonly Step[]
  readonly expected: readonly number[]
  /** The number of lines that the user writes, and of lines that are deleted without a replacement. */
  readonly lines: readonly [written: number, deleted: number]
}

const IMPORT: Edit = ["import('@fastify/rate-limit')", "import('@sluice/fastify')"]
const from = (path: string, count: number): Step[] => times(count, path)

/** The first example. */
export const FIRST: Example = {
  has: "fastify.listen({ port: 3000 }",
  edits: [IMPORT, ["max: 100", "limit: 100"], ["timeWindow:", "window:"]],
  steps: times(101, "/"),
  expected: [...times(100, 200), 429],
  lines: [3, 0],
}

/** The other examples by their subject. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  "404 responses": {
    has: "fastify.rateLimit()",
    edits: [
      ["global: true, max: 2, timeWindow", "limit: 2, window"],
      ["({\n  preHandler: fastify.rateLimit()\n}, ", "("],
    ],
    steps: times(3, "/nowhere"),
    expected: [404, 404, 429],
    lines: [2, 2],
  },
  "404 responses with another limit": {
    has: "fastify.rateLimit({",
    edits: [
      [
        "global: true, max: 2, timeWindow: 1000",
        "limit: 2, window: 1000, notFound: { limit: 4, window: 500 }",
      ],
      ["({\n  preHandler: fastify.rateLimit({\n    max: 4,\n    timeWindow: 500\n  })\n}, ", "("],
    ],
    steps: times(5, "/nowhere"),
    expected: [404, 404, 404, 404, 429],
    lines: [2, 5],
  },
  "`max`, a function": {
    has: "request.headers['service-key']",
    edits: [
      ["keyGenerator (request) { return request.headers['service-key'] }", "field: 'header:service-key'"],
      [
        "max: async (request, key) => { return key ===",
        "limit: async (request) => { return request.headers['service-key'] ===",
      ],
      ["timeWindow:", "window:"],
    ],
    steps: ["free", "pro"].flatMap((key) => times(4, as("Service-Key", key))),
    expected: [200, 200, 429, 429, 200, 200, 200, 429],
    lines: [3, 0],
  },
  "limits of routes, with Redis": {
    has: "groupId:",
    everywhere: [
      ["max: 3,", "limit: 3,"],
      ["timeWindow:", "window:"],
      ['groupId:"OTP"', 'group: "OTP"'],
    ],
    edits: [
      ["import Fastify", "import { redisStore } from '@sluice/redis'\nimport Fastify"],
      IMPORT,
      [/ {4}global : false,.*\n/, ""],
      [/ {4}max: 3000,.*\n/, ""],
      [/ {6}onExceeding:[^}]*\},\n/, ""],
      ["allowList: ['192.168.0.10']", "skip: (request) => request.ip === '192.168.0.10'"],
      ["redis: redis", "service: 'shop', store: redisStore({ client: redis })"],
      [
        "      window: '1 minute',\n      allowList:",
        "      limit: 3000,\n      window: '1 minute',\n      allow:",
      ],
      ["onExceeded: function (request, key)", "onRejected: function (request)"],
    ],
    // Only in Sluice do the two routes of the group share a counter, so the steps use only one of them.
    steps: [
      ...from("/", 4),
      ...from("/private", 4),
      ...from("/public", 4),
      ...from("/public/sub-rated-1", 4),
      ...from("/otp/send", 4),
    ],
    expected: [200, 200, 200, 429, 200, 200, 200, 429, ...times(8, 200), 200, 200, 200, 429],
    lines: [18, 3],
  },
  "routes with another limit, or with none": {
    has: "max: 9",
    edits: [
      IMPORT,
      ["max: 100", "limit: 100"],
      ["timeWindow:", "window:"],
      ["max: 9", "limit: 9,\n      window: '1 minute'"],
    ],
    steps: [...from("/private", 10), ...from("/public", 101), ...from("/", 101)],
    expected: [...times(9, 200), 429, ...times(101, 200), ...times(100, 200), 429],
    lines: [5, 0],
  },
  "`createRateLimit`": {
    has: "checkCustomRateLimit",
    everywhere: [["if(!limit.isAllowed && limit.isExceeded)", "if(!limit.allowed)"]],
    edits: [
      ["import Fastify", "import { createLimiter } from '@sluice/core'\nimport Fastify"],
      [/\/\/ register with[^}]*\}\)\n\n/, ""],
      ["fastify.createRateLimit()", "createLimiter({ limit: 100, window: '1 minute' })"],
      ["fastify.createRateLimit({ max: 100 })", "createLimiter({ limit: 100, window: '1 minute' })"],
      ["await checkRateLimit(", "await checkRateLimit.decide("],
      ["await checkCustomRateLimit(", "await checkCustomRateLimit.decide("],
    ],
    steps: [...from("/", 101), "/custom"],
    expected: [...times(100, 200), 429, 200],
    lines: [7, 6],
  },
}

/**
 * Returns the example with the user's changes. Throws if a string does not occur, so that a change of the README is
 * detected.
 */
export function changed(text: string, { everywhere = [], edits }: Example): string {
  const replaced = everywhere.reduce((all, [old, replacement]) => {
    if (!all.includes(old)) throw new Error(`${old} does not occur`)
    return all.replaceAll(old, replacement)
  }, text)
  return edited(replaced, edits)
}
