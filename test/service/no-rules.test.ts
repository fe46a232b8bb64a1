import { RuleSourceError } from "@sluice/core"
import { createRuleBook, type RuleSource } from "@sluice/rules"
import { expect, it } from "vitest"
import { ServiceGuards } from "../../packages/service/src/deciding/service-guards.ts"

const QUIET = { warn() {}, error() {} }

function guardsOf(source: RuleSource) {
  const book = createRuleBook({ source, logger: QUIET })
  return { book, guards: new ServiceGuards(book, {}, () => {}) }
}

it("a request for a service whose rules are not loaded yet fails and is not forwarded", async () => {
  const { book, guards } = guardsOf({
    load: async () => {
      throw new RuleSourceError("the table is gone")
    },
  })
  await expect(guards.of("orders")).rejects.toMatchObject({ code: 14 })
  await guards.close()
  book.close()
})

it("a closed rule book is reported as a fault", async () => {
  const { book, guards } = guardsOf({ load: async () => ({ rules: [], problems: [] }) })
  book.close()
  await expect(guards.of("orders")).rejects.toMatchObject({ code: "SLUICE_CLOSED" })
  await guards.close()
})

it("a guard is created once for concurrent first requests, and closed when its rules are removed", async () => {
  let limits: readonly number[] = [5]
  const rulesNow = () => limits.map((limit) => ({ name: "all", field: "service", limit, window: "1 day" }))
  const made: string[] = []
  const source: RuleSource = { load: async () => ({ rules: rulesNow(), problems: [] }) }
  const book = createRuleBook({ source, logger: QUIET })
  const guards = new ServiceGuards(book, {}, (_limiter, service) => made.push(service))
  const [one, other] = await Promise.all([guards.of("orders"), guards.of("orders")])
  expect(one).toBeDefined()
  expect(other).toBe(one)
  expect(made).toEqual(["orders"])
  limits = [6]
  await book.refresh({ service: "orders" })
  expect(guards.of("orders")).toMatchObject({ service: "orders", readsNothing: true, countsAll: true })
  guards.drain()
  await guards.close()
  book.close()
})
