import { createLimiter, InvalidOptionError } from "@sluice/core"
import { expect, it } from "vitest"
import { namesWithCounterpart, readGuide } from "./guide.ts"

/** Members of an option that is an object, and options of other functions of the middleware. */
const NOT_OPTIONS = ["remaining", "reset", "total", "sendCommand", "sendCommandCluster", "prefix"]

/** Options that have the same name in both libraries. */
const SAME_NAME = ["headers", "hook", "limit", "logger", "skip", "store"]

function messageFor(name: string): string {
  try {
    createLimiter({ limit: 1, window: "1 minute", [name]: 1 })
  } catch (error) {
    if (error instanceof InvalidOptionError) return error.message
  }
  return "accepted"
}

it.each([
  "express-rate-limit.md",
  "fastify-rate-limit.md",
  "koa-ratelimit.md",
  "rate-limiter-flexible-names.md",
])("createLimiter rejects each old option name in %s, and the message names the replacement", (file) => {
  const left = namesWithCounterpart(readGuide(file).rows("Options"))
    .filter((name) => !SAME_NAME.includes(name) && !NOT_OPTIONS.includes(name))
    .map((name) => [name, messageFor(name)] as const)
  expect(left.length).toBeGreaterThan(5)
  for (const [name, message] of left)
    expect(message).toMatch(
      new RegExp(
        `"${name}" is not a member of the options; (use|leave out|nothing is thrown; use|no counterpart:) `,
      ),
    )
})
