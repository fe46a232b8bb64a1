import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { ROOT } from "./documents.ts"
import { rowsOf } from "./failures/guide.ts"
import { breakRedis, REDIS_FAILURES } from "./failures/redis.ts"
import { breakRules, RULE_FAILURES } from "./failures/rules.ts"

const ofErrors = readFileSync(`${ROOT}docs/errors/sluice_store_unavailable.md`, "utf8")
const ofRedis = readFileSync(`${ROOT}docs/production/redis-fails.md`, "utf8")
const ofOthers = readFileSync(`${ROOT}docs/production/other-failures.md`, "utf8")

/** The effect and the reason of each failure, as the error's page and the table of causes describe them. */
const SHOWN: Readonly<Record<string, readonly [effect: string, reason: string]>> = {
  "is slow": ["slow", "did not respond in time."],
  "is frozen, or the network drops what is sent": ["frozen", "did not respond in time."],
  "is gone": ["gone", "its client has no connection"],
  "refuses connections": ["refuses connections", "its client has no connection"],
  "is full": ["no memory left", "OOM"],
  "is read-only, a replica without a primary": ["a replica", "is a replica"],
  "refuses a command, by its ACL": ["ACL", "NOPERM"],
  "sends an invalid reply": ["an invalid reply", "The Redis key"],
}

describe("the guide to Redis failures", () => {
  const kinds = rowsOf(ofErrors, "`kind`")
  const failures = Object.entries(SHOWN).map(([what, [effect, reason]]) => {
    const shown = kinds.filter(([, cell]) => cell?.includes(effect)).map(([kind]) => kind)
    return [what, shown.join(" or "), reason] as const
  })
  /** The parts that a message may contain, in the order of the table of remedies. */
  const reasons = rowsOf(ofRedis, "the message says").map(([cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, part = ""]) => part),
  )

  it("covers every Redis failure that the tests can cause", () => {
    expect(failures.map(([what]) => what)).toEqual(Object.keys(REDIS_FAILURES))
  })

  it.concurrent.for(failures)(
    "names the right error if Redis %s: %s",
    async ([what, kind, shown], { expect, onTestFinished }) => {
      const seen = await breakRedis(what, onTestFinished)
      // After five consecutive failures, no request waits. A server that still sends some replies may interrupt this
      // series.
      const { unavailable = 0, ...errors } = seen.errors
      const told = kind.replaceAll("`", "")
      expect(Object.keys(errors)).toEqual([told])
      expect(errors[told]).toBeGreaterThanOrEqual(5)
      expect(unavailable).toBeGreaterThan(0)
      // The first 10 requests are admitted, because the limit is 10. The process admits them from its own counters.
      expect(seen.statuses).toEqual([...Array(10).fill(200), 429, 429])
      expect(seen.told).toEqual(
        Array(12).fill({ policy: true, quota: false, retryAfter: expect.any(Boolean) }),
      )
      expect(seen.told.map(({ retryAfter }) => retryAfter)).toEqual([...Array(10).fill(false), true, true])
      if (told === "timeout") expect(seen.waited).toBe(true)
      // On a busy machine, one of the first requests may be late for another reason.
      const codes = seen.codes.filter((code) => code !== "SLUICE_DEGRADED_FURTHER")
      expect(codes).toEqual(["SLUICE_DEGRADED", "SLUICE_RECOVERED"])
      const [reason] = reasons.filter((parts) => parts.some((part) => seen.message.includes(part)))
      expect([what, seen.message, reason?.[0]]).toEqual([what, seen.message, shown])
    },
  )
})

describe("the guide to rule failures", () => {
  const cases = rowsOf(ofOthers, "`error.type`").flatMap(([type = "", cell = ""]) =>
    cell.split(", ").map((what) => [what, type.replaceAll("`", "")] as const),
  )

  it("covers every rule failure that the tests can cause", () => {
    expect(cases.map(([what]) => what).toSorted()).toEqual(Object.keys(RULE_FAILURES).toSorted())
  })

  it.concurrent.for(cases)(
    "names the right error, and the previous rules stay in force: %s, %s",
    async ([what, code], { expect, onTestFinished }) => {
      const seen = await breakRules(what, onTestFinished)
      expect(seen.errors).toEqual({ [code]: 1 })
      expect(seen.problems).toBe(0)
      expect(seen.codes).toEqual(["SLUICE_RULES_REJECTED"])
      expect(seen.inForce).toEqual(["first", "second"])
    },
  )
})

it.each([
  ["production/redis-fails", ofRedis],
  ["production/other-failures", ofOthers],
])("every section of docs/%s.md names the tests that prove it", (_, guide) => {
  const sections = guide.split(/^#{2,3} /m).slice(1)
  const named = sections.map((section) => [...section.matchAll(/^<!-- shown by: (\S+): (.+) -->$/gm)])
  expect(sections.filter((_, at) => named[at]?.length === 0)).toEqual([])
  for (const [, file = "", title = ""] of named.flat()) {
    expect([file, existsSync(ROOT + file)]).toEqual([file, true])
    expect(readFileSync(ROOT + file, "utf8")).toContain(`"${title}"`)
  }
})
