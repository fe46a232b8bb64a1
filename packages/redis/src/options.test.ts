import { InvalidOptionError } from "@sluice/core"
import { describe, expect, it } from "vitest"
import type { NodeRedisLike } from "./clients/commands-of.ts"
import { parseOptions, type RedisStoreOptions } from "./options.ts"

const nothing = () => Promise.resolve()
/** A fake node-redis client that is not connected. */
const client: NodeRedisLike = {
  ...{ isOpen: false, isReady: false, evalSha: nothing, eval: nothing, del: nothing },
}
/** The method that clients of all libraries have. */
const duplicate = () => undefined

function problemsOf(options: unknown): readonly string[] {
  try {
    parseOptions(options as RedisStoreOptions)
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    return error.problems.map(({ path, message, accepted }) => {
      return `${path}: ${message}${accepted === undefined ? "" : ` (${accepted})`}`
    })
  }
  return []
}

const PREFIX = "up to 64 printable ASCII characters, except { and }"
const MS = "a whole number of milliseconds from"

describe("parseOptions", () => {
  it("accepts a client alone and applies the defaults", () => {
    const { commands, ...others } = parseOptions({ client })
    expect(others).toEqual({ prefix: "", denyCacheMs: 10_000, timeoutMs: 50, clock: undefined })
    expect(commands.isCluster).toBe(false)
  })

  it("treats undefined options as missing", () => {
    const none = { prefix: undefined, denyCacheMs: undefined, timeoutMs: undefined, clock: undefined }
    const { commands: _, ...others } = parseOptions({ client, ...none })
    expect(others).toEqual({ prefix: "", denyCacheMs: 10_000, timeoutMs: 50, clock: undefined })
  })

  it.each<Partial<RedisStoreOptions>>([
    { prefix: "" },
    { prefix: " !app~:" },
    { prefix: "x".repeat(64) },
    { denyCacheMs: 0 },
    { denyCacheMs: 2 ** 31 - 1 },
    { timeoutMs: 1 },
    { timeoutMs: 2 ** 31 - 1 },
    { clock: { now: () => 5 } },
  ])("accepts %j", (option) => {
    expect(parseOptions({ client, ...option })).toMatchObject(option)
  })

  it.each<[Record<string, unknown>, string]>([
    [{ prefix: 5 }, `prefix: 5 is not a valid prefix (${PREFIX})`],
    [{ prefix: ["app"] }, `prefix: [ 'app' ] is not a valid prefix (${PREFIX})`],
    [{ prefix: { a: { b: {} } } }, `prefix: { a: [Object] } is not a valid prefix (${PREFIX})`],
    [{ prefix: "x".repeat(65) }, `prefix: '${"x".repeat(65)}' is not a valid prefix (${PREFIX})`],
    [{ prefix: "zoë" }, `prefix: 'zoë' is not a valid prefix (${PREFIX})`],
    [{ prefix: "{app" }, `prefix: '{app' is not a valid prefix (${PREFIX})`],
    [{ prefix: "app}" }, `prefix: 'app}' is not a valid prefix (${PREFIX})`],
    [{ denyCacheMs: -1 }, `denyCacheMs: -1 is not a valid time (${MS} 0 to 2147483647)`],
    [{ denyCacheMs: 2 ** 31 }, `denyCacheMs: 2147483648 is not a valid time (${MS} 0 to 2147483647)`],
    [
      { denyCacheMs: { a: { b: {} } } },
      `denyCacheMs: { a: [Object] } is not a valid time (${MS} 0 to 2147483647)`,
    ],
    [{ timeoutMs: 0 }, `timeoutMs: 0 is not a valid time (${MS} 1 to 2147483647)`],
    [{ timeoutMs: 1.5 }, `timeoutMs: 1.5 is not a valid time (${MS} 1 to 2147483647)`],
    [{ timeoutMs: "50" }, `timeoutMs: '50' is not a valid time (${MS} 1 to 2147483647)`],
    [{ clock: null }, "clock: null is not a clock ({ now(): epoch milliseconds, wait?(ms, signal) })"],
    [
      { clock: { now: 5 } },
      'clock: {"now":5} is not a clock ({ now(): epoch milliseconds, wait?(ms, signal) })',
    ],
    [
      { timeout: 5 },
      'timeout: is not an option of redisStore; did you mean "timeoutMs"? (client, prefix, denyCacheMs, timeoutMs, clock)',
    ],
    [{ keyPrefix: "app:" }, 'keyPrefix: is not an option of redisStore; use "prefix" instead'],
  ])("rejects %j", (option, problem) => {
    expect(problemsOf({ client, ...option })).toEqual([problem])
  })

  it("rejects a client, a URL or another value as options, without showing the client or URL", () => {
    const refused = "is not an options object (redisStore({ client, prefix, denyCacheMs, timeoutMs, clock }))"
    const secret = [{ ...client, duplicate, password: "secret" }, "redis://:secret@localhost"]
    expect(secret.map(problemsOf)).toEqual([[`: the client itself ${refused}`], [`: a string ${refused}`]])
    expect([undefined, null, 5].map(problemsOf)).toEqual([
      [`: undefined ${refused}`],
      [`: null ${refused}`],
      [`: 5 ${refused}`],
    ])
  })

  it("treats an object as options even if it has methods or options of a client", () => {
    expect(problemsOf({ client, duplicate })).toEqual([
      "duplicate: is not an option of redisStore (client, prefix, denyCacheMs, timeoutMs, clock)",
    ])
    expect(problemsOf({ prefix: "app:" })).toEqual([expect.stringMatching(/^client: undefined is not/)])
  })

  it("reports all problems together, with the client first", () => {
    const problems = problemsOf({ timeoutMs: 0, client: "redis://localhost", prefix: "{" })
    expect(problems).toEqual([
      expect.stringMatching(/^client: /),
      expect.stringMatching(/^timeoutMs: /),
      expect.stringMatching(/^prefix: /),
    ])
  })

  it("rethrows the error of a client whose properties cannot be read", () => {
    const broken = new Proxy(
      {},
      {
        get: () => {
          throw new RangeError("broken")
        },
        has: () => {
          throw new RangeError("broken")
        },
      },
    )
    expect(() => parseOptions({ client: broken as NodeRedisLike })).toThrow(RangeError)
  })
})
