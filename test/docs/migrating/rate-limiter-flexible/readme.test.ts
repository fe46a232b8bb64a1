import express from "express"
import { describe, expect, it } from "vitest"
import { runTypeScript } from "../../typescript/run.ts"
import { statuses } from "../pairs.ts"
import { edited, exampleOf, expectLinesTold, linesChanged } from "../readme-examples.ts"
import { times } from "../requests.ts"

const PEER = "rate-limiter-flexible"
/** The README imports the limiter in a different block. */
const IMPORT = exampleOf(PEER, "or import directly")
  .text.split("\n")
  .find((line) => line.includes("{ RateLimiterMemory }"))
const block = exampleOf(PEER, "rateLimiter.consume(")
const before = `${IMPORT}\n${block.text}`
const after = edited(before, [
  [`import { RateLimiterMemory } from "${PEER}"`, 'import { createLimiter } from "@sluice/core"'],
  ["points: 6", "limit: 6"],
  ["duration: 1,", 'window: "1 second",'],
  ["new RateLimiterMemory(", "createLimiter("],
  ["consume(remoteAddress, 2)", "enforce({ remoteAddress }, { cost: 2 })"],
])

type Consume = (remoteAddress: string | undefined, answer: (status: number) => void) => Promise<void>

/** Runs the example in an app that calls it for each request, and resolves to the statuses. */
async function statusesOf(text: string): Promise<number[]> {
  const called = edited(text, [
    ["\nrateLimiter.", "\nconst consume = (remoteAddress, answer) => rateLimiter."],
    ["// 2 points consumed", "answer(200)"],
    ["// Not enough points to consume", "answer(429)"],
  ])
  const { consume } = (await runTypeScript({ ...block, text: called })) as { consume: Consume }
  const app = express().use(({ socket }, res) => {
    void consume(socket.remoteAddress, (status) => void res.sendStatus(status))
  })
  return statuses(app, times(5, "/"))
}

describe("the README example of rate-limiter-flexible", () => {
  it("responds in the same way after the change", async () => {
    expect(await statusesOf(before)).toEqual([200, 200, 200, 429, 429])
    expect(await statusesOf(after)).toEqual([200, 200, 200, 429, 429])
  })

  it("needs as many changed lines as the guide states, and at most 8 new lines", () => {
    const lines = linesChanged(before, after)
    expect(lines.written.length).toBeLessThanOrEqual(8)
    expectLinesTold(PEER, "", lines)
  })
})
