import { RateLimitExceededError } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { beforeEach, describe, expect, it } from "vitest"
import { limitInventory } from "./service-to-service.ts"

const clock = manualClock()
let reached: string[]
let stockOf: ReturnType<typeof limitInventory>

beforeEach(() => {
  clock.resetAll()
  reached = []
  stockOf = limitInventory(
    async (item) => {
      reached.push(item)
      return item.length
    },
    { clock },
  )
})

const callAll = (calls: number) =>
  Promise.allSettled(Array.from({ length: calls }, (_, call) => stockOf(`item ${call % 7}`)))

describe("the service-to-service recipe", () => {
  it("admits 500 calls per second in total, for all items together", async () => {
    const calls = await callAll(600)
    expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(500)
    expect(reached).toHaveLength(500)
  })

  it("returns the other service's response", async () => {
    expect(await stockOf("screws")).toBe(6)
  })

  it("rejects calls above the limit with the exact wait, without sending them", async () => {
    await callAll(500)
    const error = await stockOf("nails").catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(RateLimitExceededError)
    const { decision } = error as RateLimitExceededError
    expect(decision).toMatchObject({ policy: "calls", limit: 500, remaining: 0 })
    expect(decision.checks).toMatchObject([{ windowMs: 1_000 }])

    clock.advance(decision.retryAfterMs - 1)
    await expect(stockOf("nails")).rejects.toThrow(RateLimitExceededError)
    expect(reached).toHaveLength(500)
    clock.advance(1)
    expect(await stockOf("nails")).toBe(5)
  })
})
