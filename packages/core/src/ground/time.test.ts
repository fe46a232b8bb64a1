import { AsyncLocalStorage } from "node:async_hooks"
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { Clock } from "./clock.ts"
import { manualClock } from "./manual-clock.ts"
import { countHeldTimers } from "./testing/held-timers.ts"
import {
  after,
  beforeDeadline,
  ignore,
  keepingAlive,
  onAbort,
  outsideRequests,
  setTimer,
  soon,
  unlessAborted,
} from "./time.ts"

const never = new Promise<never>(() => undefined)
const tooLate = (): Promise<never> => Promise.reject(new Error("too late"))

function blockEventLoop(forMs: number): void {
  const endMs = performance.now() + forMs
  while (performance.now() < endMs);
}

describe("work outside of requests", () => {
  const request = new AsyncLocalStorage<string>()

  it("does not inherit the async context of the request that started it", () => {
    expect(request.run("a request", () => outsideRequests(() => request.getStore()))).toBeUndefined()
  })

  it("includes the callbacks of timers and deadlines", async () => {
    const seen = await new Promise<unknown[]>((resolve) => {
      request.run("a request", () => {
        const timers: unknown[] = []
        setTimer(() => timers.push(request.getStore()), 1)
        const late = () => resolve([...timers, request.getStore()])
        void beforeDeadline<void>(never, 2, late)
      })
    })
    expect(seen).toEqual([undefined, undefined])
  })
})

it("soon() runs its callback after the current callback, even with fake timers", async () => {
  vi.useFakeTimers()
  try {
    const order: string[] = []
    soon(() => order.push("soon"))
    order.push("now")
    await Promise.resolve()
    expect(order).toEqual(["now", "soon"])
  } finally {
    vi.useRealTimers()
  }
})

describe("a deadline", () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it("expires one event-loop tick after its timer fires", () => {
    const onLate = vi.fn()
    void beforeDeadline(never, 10, onLate)
    vi.advanceTimersByTime(9)
    expect(vi.getTimerCount()).toBe(1)
    vi.runOnlyPendingTimers()
    expect(onLate).not.toHaveBeenCalled()
    vi.runOnlyPendingTimers()
    expect(onLate).toHaveBeenCalledOnce()
  })

  it.each([9, 10])("of 10 ms leaves no timer if the work ends after %i ms", async (ms) => {
    const onLate = vi.fn()
    let end: () => void = () => undefined
    const work = new Promise<void>((resolve) => {
      end = resolve
    })
    const answered = beforeDeadline(work, 10, onLate)
    vi.advanceTimersByTime(9)
    if (ms === 10) vi.runOnlyPendingTimers()
    end()
    await answered
    expect(vi.getTimerCount()).toBe(0)
    expect(onLate).not.toHaveBeenCalled()
  })
})

it("a deadline keeps the process alive, unless the caller disables that", () =>
  countHeldTimers(async (alive) => {
    const before = alive()
    const work = nextTurn()
    const answered = [beforeDeadline(work, 60_000, ignore), beforeDeadline(work, 60_000, ignore, false)]
    expect(alive() - before).toBe(1)
    await Promise.all(answered)
    expect(alive() - before).toBe(0)
  }))

it("keepingAlive keeps the process alive until the work ends, and settles like the work", () =>
  countHeldTimers(async (alive) => {
    const before = alive()
    const [done, failed] = [
      keepingAlive(nextTurn().then(() => "done")),
      keepingAlive(Promise.reject(new Error("failed"))),
    ]
    expect(alive() - before).toBe(2)
    await expect(failed).rejects.toThrow("failed")
    expect(await done).toBe("done")
    expect(alive() - before).toBe(0)
  }))

describe("beforeDeadline", () => {
  it("settles like the work, and leaves no timer", async () => {
    vi.useFakeTimers()
    try {
      const error = new Error("down")
      const settled = Promise.allSettled([
        beforeDeadline(Promise.resolve("answer"), 60_000, tooLate),
        beforeDeadline(Promise.reject(error), 60_000, tooLate),
      ])
      expect(vi.getTimerCount()).toBe(2)
      expect(await settled).toEqual([
        { status: "fulfilled", value: "answer" },
        { status: "rejected", reason: error },
      ])
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it("rejects with the error that a thenable throws", async () => {
    const error = new Error("no promise")
    const thenable = {
      // biome-ignore lint/suspicious/noThenProperty: code that others wrote may return any thenable
      then() {
        throw error
      },
    } as unknown as Promise<never>
    await expect(beforeDeadline(thenable, 60_000, tooLate)).rejects.toBe(error)
  })

  it("settles with the fallback if the work takes longer", async () => {
    await expect(beforeDeadline(never, 5, tooLate)).rejects.toThrow("too late")
    await expect(beforeDeadline<string>(never, 5, () => "nothing")).resolves.toBe("nothing")
  })

  it("expires when the clock's wait() has ended, if the clock can wait", async () => {
    const clock = manualClock()
    const answered = beforeDeadline(never, 5, tooLate, true, clock)
    clock.advance(5)
    await expect(answered).rejects.toThrow("too late")
    const work = nextTurn("answer")
    expect(await beforeDeadline(work, 5, tooLate, true, clock)).toBe("answer")
  })

  it("uses a timer if the clock cannot wait, and cancels it when the work ends", async () => {
    const clock: Clock = {
      now: () => 0,
      wait() {
        throw new Error("no timers")
      },
    }
    await expect(beforeDeadline(never, 5, tooLate, true, clock)).rejects.toThrow("too late")
    await countHeldTimers(async (alive) => {
      const before = alive()
      await beforeDeadline(nextTurn(), 60_000, ignore, true, clock)
      expect(alive() - before).toBe(0)
    })
  })

  it("accepts a response that arrived during an event loop stall, even after the deadline", async () => {
    // A timer that is due after the deadline fires in the same tick, like a result that arrived while the event loop
    // stalled.
    const answer = new Promise<string>((resolve) => {
      setTimeout(resolve, 10, "answer")
    })
    const answered = beforeDeadline(answer, 5, tooLate)
    blockEventLoop(30)
    await expect(answered).resolves.toBe("answer")
  })

  it.each(["answer", "failure"])("ignores an asynchronous %s that comes after the deadline", async (what) => {
    let end: () => void = () => undefined
    const late = new Promise<void>((resolve, reject) => {
      end = what === "answer" ? resolve : () => reject(new Error("late"))
    })
    const answered = beforeDeadline(late, 5, tooLate)
    await expect(answered).rejects.toThrow("too late")
    end()
    // An unhandled rejection would end the process in this tick.
    await sleep(5)
    await expect(answered).rejects.toThrow("too late")
  })
})

describe("after", () => {
  it("calls back when the clock has advanced by the delay, unless it was canceled", async () => {
    const clock = manualClock()
    const called: string[] = []
    after(10, clock, () => called.push("stays"))
    after(10, clock, () => called.push("canceled"))()
    clock.advance(10)
    await nextTurn()
    expect(called).toEqual(["stays"])
  })

  it("does not call back after it was canceled, even if the clock ignores its signal", async () => {
    const called: string[] = []
    const deaf: Clock = { now: () => 0, wait: () => nextTurn() }
    const broken: Clock = { now: () => 0, wait: () => nextTurn().then(() => Promise.reject(new Error("no"))) }
    for (const clock of [deaf, broken]) {
      after(
        10,
        clock,
        () => called.push("callback"),
        () => called.push("failed"),
      )()
    }
    await nextTurn()
    await nextTurn()
    expect(called).toEqual([])
  })

  it("reports the error of a clock that cannot wait", async () => {
    const error = new Error("no timers")
    const clock: Clock = { now: () => 0, wait: () => Promise.reject(error) }
    const failed = await new Promise((resolve) => after(10, clock, ignore, resolve))
    expect(failed).toBe(error)
  })
})

it("onAbort calls all callbacks that were not canceled, with one listener per signal", () => {
  const aborting = new AbortController()
  const listen = vi.spyOn(aborting.signal, "addEventListener")
  const called: string[] = []
  const cancel = onAbort(aborting.signal, () => called.push("canceled"))
  onAbort(aborting.signal, () => called.push("stays"))
  cancel()
  aborting.abort()
  expect(called).toEqual(["stays"])
  expect(listen).toHaveBeenCalledOnce()
})

describe("unlessAborted", () => {
  it("settles like the work if there is no signal", async () => {
    await expect(unlessAborted(Promise.resolve("work"), undefined)).resolves.toBe("work")
  })

  it("ignores the signal after the work has ended", async () => {
    const aborting = new AbortController()
    const { signal } = aborting
    let reads = 0
    Object.defineProperty(signal, "reason", { get: () => reads++ })
    expect(await unlessAborted(Promise.resolve("work"), signal)).toBe("work")
    await expect(unlessAborted(Promise.reject(new Error("failed")), signal)).rejects.toThrow("failed")
    aborting.abort()
    expect(reads).toBe(0)
  })

  it("rejects immediately with the signal's reason, whether the work succeeds or fails afterwards", async () => {
    const aborting = new AbortController()
    const begun = nextTurn()
    const waiting = [begun.then(() => "done"), begun.then(() => Promise.reject(new Error("failed")))].map(
      (work) => unlessAborted<unknown>(work, aborting.signal),
    )
    aborting.abort(new Error("enough"))
    for (const each of waiting) await expect(each).rejects.toThrow("enough")
    await begun
  })

  it("rejects if the signal was already aborted", async () => {
    await expect(unlessAborted(never, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough")
  })
})
