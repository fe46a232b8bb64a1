import { createLimiter } from "@sluice/core"
import { createRuleBook, staticRules } from "@sluice/rules"
import { expect, it } from "vitest"

const limiter = createLimiter({ limit: 1, window: "1 minute" })
const book = createRuleBook({ source: staticRules([]) })

const CALLS: Readonly<Record<string, (options: never) => Promise<unknown>>> = {
  "limiter.ready": (options) => limiter.ready(options),
  "limiter.refresh": (options) => limiter.refresh(options),
  "book.ready": (options) => book.ready(options),
  "book.refresh": (options) => book.refresh(options),
  "book.find": (options) => book.find("a", options),
}

it.each(Object.entries(CALLS))("%s rejects a signal that is not an AbortSignal", async (_name, call) => {
  for (const signal of [null, {}, 5, new AbortController()]) {
    await expect(call({ signal } as never)).rejects.toMatchObject({
      code: "SLUICE_INVALID_OPTION",
      problems: [{ path: "signal", accepted: "an AbortSignal" }],
    })
  }
})

it.each(Object.entries(CALLS))(
  "%s rejects options that are not an object, but accepts null",
  async (_name, call) => {
    await expect(call(5_000 as never)).rejects.toMatchObject({
      problems: [{ path: "", message: "5000 is not an options object" }],
    })
    await call(null as never)
  },
)

it.each(Object.entries(CALLS))("%s rejects with the reason of an aborted signal", async (_name, call) => {
  const reason = new Error("no longer wanted")
  await expect(call({ signal: AbortSignal.abort(reason) } as never)).rejects.toBe(reason)
})

it("a rule book rejects a service that is not a string", async () => {
  const problems = [{ path: "service", message: "5 is not the name of a service", accepted: "a string" }]
  for (const call of ["rulesOf", "statusOf"] as const) {
    expect(() => book[call](5 as never)).toThrow(expect.objectContaining({ problems }))
  }
  await expect(book.find(5 as never)).rejects.toMatchObject({ problems })
  await expect(book.refresh({ service: 5 as never })).rejects.toMatchObject({ problems })
})
