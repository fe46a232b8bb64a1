import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it, vi } from "vitest"
import { StoreUnavailableError } from "./errors.ts"
import { withinDeadline } from "./time.ts"

const forever = new Promise<never>(() => undefined)

function blockEventLoop(forMs: number): void {
  const endMs = performance.now() + forMs
  while (performance.now() < endMs);
}

describe("withinDeadline", () => {
  it("yields what the store answers", async () => {
    await expect(withinDeadline(Promise.resolve("answer"), 60_000)).resolves.toBe("answer")
    await expect(withinDeadline(Promise.resolve("answer"), undefined)).resolves.toBe("answer")
  })

  it("rejects with what the store rejects with", async () => {
    const error = new Error("down")
    await expect(withinDeadline(Promise.reject(error), 60_000)).rejects.toBe(error)
    await expect(withinDeadline(Promise.reject(error), undefined)).rejects.toBe(error)
  })

  it("rejects with what a thenable throws", async () => {
    const error = new Error("no promise")
    const thenable = {
      // biome-ignore lint/suspicious/noThenProperty: a store that others wrote
      then() {
        throw error
      },
    } as unknown as Promise<string>
    await expect(withinDeadline(thenable, 60_000)).rejects.toBe(error)
    await expect(withinDeadline(thenable, undefined)).rejects.toBe(error)
  })

  it("rejects when the store is silent for longer, and says for how long", async () => {
    const error = await withinDeadline(forever, 5).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ message: "The store did not answer within 5 ms.", kind: "timeout" })
  })

  it("leaves the deadline to a store that sees to it itself", async () => {
    const silent = withinDeadline(forever, undefined).then(() => "settled")
    await expect(Promise.race([silent, sleep(20, "silent")])).resolves.toBe("silent")
  })

  it("reads what arrived while the event loop stood still, though the time is over", async () => {
    // A timer that is due after that of the deadline runs in the same turn: what it brings came while the loop stood still.
    const answered = withinDeadline(
      new Promise((resolve) => {
        setTimeout(resolve, 10, "answer")
      }),
      5,
    )
    blockEventLoop(30)
    await expect(answered).resolves.toBe("answer")
  })

  it("keeps no timer once there is an answer or a failure", async () => {
    vi.useFakeTimers()
    try {
      const settled = [withinDeadline(Promise.resolve(1), 60_000), withinDeadline(Promise.reject(2), 60_000)]
      expect(vi.getTimerCount()).toBe(2)
      await Promise.allSettled(settled)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it("makes no error of what arrives while it looks for the last time", async () => {
    vi.useFakeTimers()
    try {
      let answer: (text: string) => void = () => undefined
      const answered = withinDeadline(
        new Promise<string>((resolve) => {
          answer = resolve
        }),
        5,
      )
      vi.runOnlyPendingTimers()
      expect(vi.getTimerCount()).toBe(1)
      answer("answer")
      await expect(answered).resolves.toBe("answer")
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it.each(["answer", "failure"])("drops an %s that comes later", async (what) => {
    let end: () => void = () => undefined
    const late = new Promise<void>((resolve, reject) => {
      end = what === "answer" ? resolve : () => reject(new Error("late"))
    })
    const answered = withinDeadline(late, 5)
    await expect(answered).rejects.toMatchObject({ kind: "timeout" })
    end()
    // What is not handled would end the process in this turn.
    await sleep(5)
    await expect(answered).rejects.toMatchObject({ kind: "timeout" })
  })
})
