import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "vitest"
import type { RuleCheck } from "../../decision/rule-check.ts"
import { ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import { setUp } from "./testing/room.ts"

const waitsForOne = ({ policy }: RuleCheck): boolean => policy.name === "one"

it("a request that is being decided while all rules are removed is admitted without waiting", async () => {
  let isSlow = false
  const { clock, room, enter, answer, log } = setUp(() => isSlow)
  enter("all", [ruleCheck("one", 2, 2)])
  isSlow = true
  const onWait = () => expect.unreachable("it does not wait")
  enter("asks", [ruleCheck("one", 2)], { maxWaitMs: SECOND, onWait, currentChecks: () => [] })
  room.turnToNewRules()
  Object.assign(clock, { wait: () => expect.unreachable("there is nothing to wait for") })
  await answer()
  expect([log, room.size]).toEqual([["0 all", "0 asks"], 0])
})

it("a request whose pending grant is superseded is decided by the new rules, without units of the old ones", async () => {
  let isSlow = false
  const { decider, room, enter, answer, pending, log, calls } = setUp(() => isSlow)
  const [one, other] = [(cost: number) => ruleCheck("one", 4, cost), ruleCheck("other", 4)]
  await decider.take([one(2)])
  isSlow = true
  enter("dear", [one(3)])
  enter("cheap", [one(2)], { currentChecks: () => [other] })
  await answer()
  // The expensive request waits, so the grant of the cheap one will not be used.
  room.turnToNewRules()
  expect([pending.length, calls.takes]).toEqual([1, 3])
  await answer()
  await answer()
  expect([log, calls.returns]).toEqual([["0 cheap"], 1])
  isSlow = false
  expect((await decider.peek([one(1), other])).checks.map(({ remaining }) => remaining)).toEqual([2, 3])
})

it("a request is read again only if the rules change and its grant depends on them", async () => {
  const { room, enter, pass, log } = setUp()
  let reads = 0
  const leaky = ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 5 })
  const currentChecks = () => {
    reads++
    return [leaky]
  }
  for (const name of ["a", "b", "c"]) enter(name, [leaky], { currentChecks })
  await nextTurn()
  await pass(100)
  expect([log, reads]).toEqual([["0 a", "100 b"], 0])
  room.turnToNewRules()
  await pass(100)
  expect([log.slice(2), reads]).toEqual([["200 c"], 1])
})

it("rules that do not queue are checked after a rule change only for requests without a store call", async () => {
  const { decider, room, enter, calls, log } = setUp()
  const [one, hard] = [ruleCheck("one", 1), ruleCheck("hard", 9)]
  await decider.take([one])
  const patience = { waitsFor: waitsForOne, currentChecks: () => [hard, one] }
  for (const name of ["first", "second", "third"]) enter(name, [one], patience)
  room.turnToNewRules()
  await nextTurn()
  // The first request has called the store, which has refused it under all rules.
  expect([log, calls.reads]).toEqual([[], 2])
})

it("a request behind others, being decided while the rules change, is refused immediately by a new hard rule", async () => {
  let isSlow = false
  const { decider, room, enter, answer, log } = setUp((_checks, isPeek) => isSlow && !isPeek)
  const [one, hard] = [ruleCheck("one", 1), ruleCheck("hard", 1, 1, { windowMs: 60 * SECOND })]
  await decider.take([one])
  await decider.take([hard])
  isSlow = true
  enter("first", [one])
  enter("second", [one], { waitsFor: waitsForOne, currentChecks: () => [hard, one] })
  room.turnToNewRules()
  for (let i = 0; i < 2; i++) await answer()
  expect(log).toEqual(["0 second: refused by hard"])
})

it("a request that is refused while the rules change is decided by the new rules alone if none queues", async () => {
  const isSlow = { is: false }
  const { decider, room, enter, answer, pending, log } = setUp(() => isSlow.is)
  await decider.take([ruleCheck("one", 1)])
  isSlow.is = true
  const patience = { waitsFor: waitsForOne, currentChecks: () => [ruleCheck("hard", 1)] }
  enter("asks", [ruleCheck("one", 1)], patience)
  room.turnToNewRules()
  while (pending.length > 0) await answer()
  expect([log, room.size]).toEqual([["0 asks"], 0])
})

it("a request that leaves while requests behind it switch to new rules takes nothing under these", async () => {
  const { room, enter, pass, log } = setUp()
  const leaving = new AbortController()
  const renewed = { currentChecks: () => [ruleCheck("new", 1)] }
  enter("takes", [ruleCheck("old", 1)])
  enter("leaves", [ruleCheck("old", 1)], { ...renewed, signal: leaving.signal })
  enter("stays", [ruleCheck("old", 1)], {
    ...renewed,
    onRulesChanged: () => leaving.abort(new Error("gone")),
  })
  room.turnToNewRules()
  await pass(0)
  expect(log).toEqual(["0 takes", "0 leaves: gone", "0 stays"])
})
