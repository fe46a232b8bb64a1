import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "vitest"
import { ruleCheck } from "../../decision/testing/rule-checks.ts"
import { setUp } from "./testing/room.ts"

it("a delayed request proceeds on its turn after a rule change, even if it can no longer be read", async () => {
  const { room, enter, pass, log } = setUp()
  const leaky = ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 5 })
  const currentChecks = (): never => {
    throw new Error("The request is gone.")
  }
  for (const name of ["a", "b"]) enter(name, [leaky], { currentChecks })
  room.turnToNewRules()
  await nextTurn()
  expect(log).toEqual(["0 a"])
  await pass(100)
  expect(log.slice(1)).toEqual(["100 b"])
})

it("a waiting request calls the store under the new rules after a rule change", async () => {
  const { room, enter, log } = setUp()
  for (const name of ["a", "b"])
    enter(name, [ruleCheck("old", 1)], { currentChecks: () => [ruleCheck("new", 1)] })
  await nextTurn()
  room.turnToNewRules()
  await nextTurn()
  expect(log).toEqual(["0 a", "0 b"])
})

it("a waiting request keeps the units of new rules that it does not wait for", async () => {
  const { room, enter, log, calls } = setUp()
  enter("a", [ruleCheck("old", 1)])
  enter("b", [ruleCheck("old", 1)], {
    currentChecks: () => [ruleCheck("new", 1)],
    waitsFor: ({ policy }) => policy.name === "old",
  })
  room.turnToNewRules()
  await nextTurn()
  expect(log).toEqual(["0 a", "0 b"])
  expect(calls).toMatchObject({ takes: 3, returns: 0 })
})

it("a waiting request may be ended by the code that reads another request after a rule change", async () => {
  const { room, enter, log } = setUp()
  const leaving = new AbortController()
  enter("a", [ruleCheck("old", 1)])
  enter("b", [ruleCheck("old", 1)], {
    currentChecks() {
      leaving.abort(new Error("gone"))
      return [ruleCheck("new", 1)]
    },
  })
  enter("c", [ruleCheck("old", 1)], {
    signal: leaving.signal,
    currentChecks: () => [ruleCheck("new", 1)],
  })
  room.turnToNewRules()
  await nextTurn()
  expect(log).toEqual(["0 a", "0 c: gone", "0 b"])
})

it("a delayed request leaves only once if its signal aborts while it is read after a rule change", async () => {
  const { room, enter, log } = setUp()
  const leaving = new AbortController()
  const told: string[] = []
  const leaky = ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 5 })
  enter("a", [leaky])
  enter("b", [leaky], {
    signal: leaving.signal,
    currentChecks() {
      leaving.abort(new Error("gone"))
      return []
    },
    onWait: () => () => void told.push("is over"),
  })
  room.turnToNewRules()
  await nextTurn()
  expect([log, told]).toEqual([["0 a", "0 b: gone"], ["is over"]])
})

it("a delayed request proceeds immediately if its leaky bucket was removed, and otherwise on its turn", async () => {
  const { room, enter, pass, log, calls } = setUp()
  const leaky = ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 5 })
  enter("a", [leaky])
  enter("stays", [leaky], { currentChecks: () => [leaky] })
  enter("goes", [leaky], { currentChecks: () => [ruleCheck("new", 1)] })
  room.turnToNewRules()
  await nextTurn()
  expect(log).toEqual(["0 a", "0 goes"])
  await pass(100)
  expect(log.slice(2)).toEqual(["100 stays"])
  // Neither request has called the store again.
  expect(calls.takes).toBe(3)
})

it("a request that waits for a permit is admitted when a rule change allows more requests at a time", async () => {
  const { room, enter, pass, log, calls } = setUp()
  const permits = (limit: number) => ruleCheck("permits", limit, 1, { algorithm: "in-flight" })
  let limit = 1
  for (const name of ["a", "b", "c"]) {
    enter(name, [permits(1)], { currentChecks: () => [permits(limit)] })
  }
  await pass(0)
  await pass(5)
  expect([log, calls.takes]).toEqual([["0 a"], 3])
  limit = 2
  room.turnToNewRules()
  await nextTurn()
  expect(log).toEqual(["0 a", "5 b"])
})
