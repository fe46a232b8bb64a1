import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "vitest"
import { ruleCheck } from "../../decision/testing/rule-checks.ts"
import { setUp } from "./testing/room.ts"

it("who is held goes on when it is its turn, where its request cannot be read any more when rules change", async () => {
  const { room, enter, pass, log } = setUp()
  const leaky = ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 5 })
  const currentAsks = (): never => {
    throw new Error("The request is gone.")
  }
  for (const name of ["a", "b"]) enter(name, [leaky], { currentAsks })
  room.turnToNewRules()
  await nextTurn()
  expect(log).toEqual(["0 a"])
  await pass(100)
  expect(log.slice(1)).toEqual(["100 b"])
})

it("who waits asks what it would ask under the rules in force", async () => {
  const { room, enter, log } = setUp()
  for (const name of ["a", "b"])
    enter(name, [ruleCheck("old", 1)], { currentAsks: () => [ruleCheck("new", 1)] })
  await nextTurn()
  room.turnToNewRules()
  await nextTurn()
  expect(log).toEqual(["0 a", "0 b"])
})

it("who is held goes on at once where the rule that delays it has gone, and else when it is its turn", async () => {
  const { room, enter, pass, log } = setUp()
  const leaky = ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 5 })
  enter("a", [leaky])
  enter("stays", [leaky], { currentAsks: () => [leaky] })
  enter("goes", [leaky], { currentAsks: () => [ruleCheck("new", 1)] })
  room.turnToNewRules()
  await nextTurn()
  expect(log).toEqual(["0 a", "0 goes"])
  await pass(100)
  expect(log.slice(2)).toEqual(["100 stays"])
})
