import { expect, it } from "vitest"
import { expire, type PendingTake, settle } from "./pending.ts"

/** Creates a request that waits until the deadline, and a list of its outcomes. */
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

it("those whose deadline has come are told that Redis was silent, or out of reach, and who still waits is left", () => {
  const [over, just, later] = [waitingUntil(9), waitingUntil(10), waitingUntil(11)]
  const batch = [later, over, just].map(({ waiting }) => waiting)
  expect(expire(batch.slice(0, 2), 10, { title: "Redis", reach: "connected" })).toEqual([later.waiting])
  expect(expire(batch, 10, { title: "Redis at a:1", reach: "not connected" })).toEqual([later.waiting])
  const lost = "Redis at a:1 did not answer in time, because its client has no connection."
  expect([over.told, just.told, later.told]).toEqual([["Redis did not answer in time."], [lost], []])
})

it("who has been told already waits no more, however late the deadline is", () => {
  const { waiting } = waitingUntil(11)
  settle(waiting, new Error("closed"))
  expect(expire([waiting], 10, { title: "Redis", reach: "connected" })).toEqual([])
})

it("who is told once is told nothing else, and kept alive by no call that never ends", () => {
  const { waiting, told } = waitingUntil(10)
  const { resolve, reject } = waiting
  settle(waiting, new Error("closed"))
  settle(waiting, new Error("gone"))
  waiting.resolve([])
  waiting.reject(new Error("late"))
  expect(told).toEqual(["closed"])
  expect([waiting.resolve === resolve, waiting.reject === reject]).toEqual([false, false])
})
