import { describe, expect, it } from "vitest"
import { InvalidOptionError } from "../../ground/errors.ts"
import { type HeadersOption, headerFormats } from "./header-formats.ts"
import { parseOptions } from "./parse-options.ts"

const ACCEPTED =
  '"draft-11", "next", "triple", "legacy", { dialect, prefix, names }, a list of them, or false'
const NAME = 'a name such as "X-App-RateLimit", at most 64 characters'
const OTHER = 'other names, such as { dialect: "triple", prefix: "X-App-RateLimit" }'

function problemsOf(headers: unknown): string[] {
  try {
    parseOptions({ limit: 1, window: "1m", headers })
  } catch (error) {
    if (error instanceof InvalidOptionError)
      return error.problems.map(({ path, message, accepted }) => `${path}: ${message}; ${accepted}`)
  }
  return []
}

describe("the option headers", () => {
  it.each<[HeadersOption, string[]]>([
    [false, []],
    ["draft-11", ["RateLimit-Policy", "RateLimit"]],
    [
      ["draft-11", "legacy"],
      ["RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"],
    ],
    [
      { dialect: "legacy", prefix: "X-App-RateLimit" },
      ["X-App-RateLimit-Limit", "X-App-RateLimit-Remaining", "X-App-RateLimit-Reset"],
    ],
    [{ dialect: "draft-11", prefix: "App-Quota" }, ["App-Quota-Policy", "App-Quota"]],
    [{ dialect: "next", names: { limit: "Quota", policy: undefined } }, ["RateLimit-Policy", "Quota"]],
    [
      [
        "next",
        { dialect: "triple", prefix: "X-Triple", names: { limit: "Total", reset: "Reset", policy: "Rules" } },
      ],
      ["RateLimit-Policy", "RateLimit", "Total", "X-Triple-Remaining", "Reset", "Rules"],
    ],
  ])("%j results in these header names", (headers, names) => {
    expect(problemsOf(headers)).toEqual([])
    expect(headerFormats(headers).flatMap((format) => Object.values(format.names))).toEqual(names)
  })

  it.each<[unknown, string]>([
    ["draft-8", `headers: "draft-8" is not a header dialect; ${ACCEPTED}`],
    [true, `headers: true is not a header dialect; leave it out for the default headers; ${ACCEPTED}`],
    [null, `headers: null is not a header dialect; ${ACCEPTED}`],
    [[], `headers: [] is not a header dialect; ${ACCEPTED}`],
    [["draft-11", false], `headers[1]: false is not a header dialect; ${ACCEPTED}`],
    [[["legacy"]], `headers[0]: ["legacy"] is not a header dialect; ${ACCEPTED}`],
    [{ prefix: "X" }, 'headers.dialect: is missing; "draft-11", "next", "triple", "legacy"'],
    [{ dialect: "legacy", prefix: "X App" }, `headers.prefix: "X App" is not a header name; ${NAME}`],
    [
      { dialect: "legacy", prefix: "x".repeat(65) },
      `headers.prefix: "${"x".repeat(58)}… is not a header name; ${NAME}`,
    ],
    [{ dialect: "legacy", names: { limit: "" } }, `headers.names.limit: "" is not a header name; ${NAME}`],
    [
      [{ dialect: "legacy", names: { policy: "Rules" } }],
      'headers[0].names.policy: "policy" is not a member of the names; limit, remaining, reset',
    ],
    [
      { dialect: "draft-11", names: { remaining: "Left" } },
      'headers.names.remaining: "remaining" is not a member of the names; policy, limit',
    ],
    [
      ["draft-11", "triple"],
      `headers[1]: "triple" is not usable, because it writes RateLimit-Policy, which "draft-11" writes too; ${OTHER}`,
    ],
    [
      ["legacy", "legacy"],
      `headers[1]: "legacy" is not usable, because it writes X-RateLimit-Limit, which "legacy" writes too; ${OTHER}`,
    ],
    [
      ["legacy", { dialect: "triple", prefix: "x-ratelimit" }],
      `headers[1]: {"dialect":"triple","prefix":"x-ratelimit"} is not usable, because it writes x-ratelimit-Limit, which "legacy" writes too; ${OTHER}`,
    ],
    [
      { dialect: "legacy", names: { reset: "retry-after" } },
      `headers: {"dialect":"legacy","names":{"reset":"retry-after"}} is not usable, because it writes retry-after, which the limiter writes too; ${OTHER}`,
    ],
  ])("%j is an error", (headers, problem) => {
    expect(problemsOf(headers)).toEqual([problem])
  })
})
