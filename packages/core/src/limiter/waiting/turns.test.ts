import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { RuleCheck } from "../../decision/rule-check.ts"
import { ruleCheck } from "../../decision/testing/rule-checks.ts"
import { setUp } from "./testing/room.ts"

const leaky = (name: string, limit = 10): RuleCheck =>
  ruleCheck(name, limit, 1, { algorithm: "leaky-bucket", burst: 5 })

/** Returns a request that leaves, and the function that ends its wait. */
function leaver() {
  const leaving = new AbortController()
  const leave = async (): Promise<void> => {
    leaving.abort(new Error("gone"))
    await nextTurn()
  }
  return { patience: { signal: leaving.signal }, leave }
}

describe("the turns of a request that leaves several leaky buckets", () => {
  it("are freed immediately in buckets without a later turn, and stay taken in the other buckets", async () => {
    const { enter, pass, log } = setUp()
    const { patience, leave } = leaver()
    const [x, y] = [leaky("x"), leaky("y")]
    enter("first", [x, y])
    enter("leaves", [x, y], patience)
    enter("held", [y])
    await leave()
    enter("next in x", [x])
    enter("next in y", [y])
    for (let i = 0; i < 3; i++) await pass(100)
    expect(log.slice(2)).toEqual(["100 next in x", "200 held", "300 next in y"])
  })

  /**
   * Sets up two requests in a bucket. The result of the request that leaves is pending. The other request is held
   * with a later turn, and another rule does not delay it.
   */
  async function setUpLater() {
    let isSlow = false
    const room = setUp(() => isSlow)
    const [gone, held] = [leaver(), leaver()]
    const [x, y] = [leaky("x"), leaky("y")]
    room.enter("first", [x])
    isSlow = true
    room.enter("leaves", [x], gone.patience)
    room.enter("held", [y, x], held.patience)
    await gone.leave()
    await room.answer(1)
    await room.answer(0)
    isSlow = false
    return { ...room, x, held }
  }

  it("stay taken while another request has a later turn, even if other rules do not delay that request", async () => {
    const { enter, pass, log, x } = await setUpLater()
    enter("next", [x])
    for (let i = 0; i < 3; i++) await pass(100)
    expect(log.slice(2)).toEqual(["200 held", "300 next"])
  })

  it("are freed when the request with the later turn leaves as well", async () => {
    const { enter, pass, log, x, held } = await setUpLater()
    await held.leave()
    enter("next", [x])
    await pass(100)
    expect(log.slice(3)).toEqual(["100 next"])
  })
})

describe("turns in the same millisecond", () => {
  it("are in order, so a turn stays taken if a request with a later turn is delayed", async () => {
    const { enter, calls } = setUp()
    const { patience, leave } = leaver()
    enter("first", [leaky("x", 5_000)])
    enter("leaves", [leaky("x", 5_000)], patience)
    enter("held", [leaky("x", 5_000)])
    await leave()
    expect(calls.returns).toBe(0)
  })
})

describe("units of a request that leaves while it is being decided", () => {
  it("wake a request that needs more units, because the request ahead of it has left", async () => {
    let isSlow = false
    const { decider, enter, answer, log } = setUp(() => isSlow)
    const { patience, leave } = leaver()
    const other = await decider.take([ruleCheck("one", 3)])
    isSlow = true
    enter("dear", [ruleCheck("one", 3, 3)])
    enter("leaves", [ruleCheck("one", 3)], patience)
    await answer()
    await leave()
    // The room is not notified of these refunds.
    await decider.corrections.refund(other)
    await answer()
    await answer()
    expect(log).toEqual(["0 leaves: gone", "0 dear"])
  })
})
