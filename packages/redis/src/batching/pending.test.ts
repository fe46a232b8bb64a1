import { expect, it } from "vitest"
import { silent } from "../failure.ts"
import { expire, type PendingTake, settle } from "./pending.ts"

/** Creates a request that waits until the deadline, and an array that receives its outcomes. */
function waitingUntil(deadlineMs: number) {
  const told: string[] = []
  const waiting: PendingTake = {
    asked: { checks: [], keys: [] },
    withinMs: 5,
    deadlineMs,
    resolve: () => told.push("answered"),
    reject: ({ message }) => told.push(message),
    isRejected: false,
    wasLate: false,
  }
  return { waiting, told }
}

it("expire() rejects requests whose deadline has passed with a timeout error, and returns the others", () => {
  const [over, just, later] = [waitingUntil(9), waitingUntil(10), waitingUntil(11)]
  const batch = [later, over, just].map(({ waiting }) => waiting)
  expect(expire(batch.slice(0, 2), 10, { silence: () => silent() })).toEqual([later.waiting])
  expect(expire(batch, 10, { silence: () => silent("not connected", "Redis at a:1") })).toEqual([
    later.waiting,
  ])
  const lost = "Redis at a:1 did not respond in time, because its client has no connection."
  expect([over.told, just.told, later.told]).toEqual([["Redis did not respond in time."], [lost], []])
})

it("expire() does not return a settled request, even if its deadline has not passed", () => {
  const { waiting } = waitingUntil(11)
  settle(waiting, new Error("closed"))
  expect(expire([waiting], 10, { silence: () => silent() })).toEqual([])
})

it("a request is settled at most once, and does not retain its callbacks afterwards", () => {
  const { waiting, told } = waitingUntil(10)
  const { resolve, reject } = waiting
  settle(waiting, new Error("closed"))
  settle(waiting, new Error("gone"))
  waiting.resolve({ nowMs: 0, granted: true, checks: [] })
  waiting.reject(new Error("late"))
  expect(told).toEqual(["closed"])
  expect([waiting.resolve === resolve, waiting.reject === reject]).toEqual([false, false])
})
