import { AsyncLocalStorage } from "node:async_hooks"
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { countHeldTimers } from "./testing/held-timers.ts"
import {
  abortedAfter,
  atDeadline,
  atOnce,
  beforeDeadline,
  held,
  inSlices,
  onAbort,
  outsideRequests,
  type Steps,
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

  it("does not see the request that started it", () => {
    expect(request.run("a request", () => outsideRequests(() => request.getStore()))).toBeUndefined()
  })

  it("includes the callbacks of timers and deadlines", async () => {
    const seen = await new Promise<unknown[]>((resolve) => {
      request.run("a request", () => {
        const timers: unknown[] = []
        setTimer(() => timers.push(request.getStore()), 1)
        atDeadline(2, () => resolve([...timers, request.getStore()]))
      })
    })
    expect(seen).toEqual([undefined, undefined])
  })
})

it("soon runs after the current callback, even with fake timers", async () => {
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

describe("atDeadline", () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it("calls back one event loop turn after the deadline", () => {
    const onLate = vi.fn()
    atDeadline(10, onLate)
    vi.advanceTimersByTime(9)
    expect(vi.getTimerCount()).toBe(1)
    vi.runOnlyPendingTimers()
    expect(onLate).not.toHaveBeenCalled()
    vi.runOnlyPendingTimers()
    expect(onLate).toHaveBeenCalledOnce()
  })

  it.each([9, 10])("can be canceled %i ms later, and leaves no timer", (ms) => {
    const onLate = vi.fn()
    const cancel = atDeadline(10, onLate)
    vi.advanceTimersByTime(9)
    if (ms === 10) vi.runOnlyPendingTimers()
    cancel()
    expect(vi.getTimerCount()).toBe(0)
    expect(onLate).not.toHaveBeenCalled()
  })
})

it("a deadline keeps the process alive, unless it is set not to", () =>
  countHeldTimers((alive) => {
    const before = alive()
    const cancels = [atDeadline(60_000, tooLate), atDeadline(60_000, tooLate, false)]
    expect(alive() - before).toBe(1)
    for (const cancel of cancels) cancel()
    expect(alive() - before).toBe(0)
  }))

it("held keeps the process alive until the work ends, and settles like the work", () =>
  countHeldTimers(async (alive) => {
    const before = alive()
    const [done, failed] = [held(nextTurn().then(() => "done")), held(Promise.reject(new Error("failed")))]
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

  it("accepts an answer that arrived during an event loop stall, even after the deadline", async () => {
    // A timer that is due after the deadline fires in the same turn: its result arrived while the event loop stalled.
    const answer = new Promise<string>((resolve) => {
      setTimeout(resolve, 10, "answer")
    })
    const answered = beforeDeadline(answer, 5, tooLate)
    blockEventLoop(30)
    await expect(answered).resolves.toBe("answer")
  })

  it.each(["answer", "failure"])("ignores an %s after the deadline", async (what) => {
    let end: () => void = () => undefined
    const late = new Promise<void>((resolve, reject) => {
      end = what === "answer" ? resolve : () => reject(new Error("late"))
    })
    const answered = beforeDeadline(late, 5, tooLate)
    await expect(answered).rejects.toThrow("too late")
    end()
    // An unhandled rejection would end the process in this turn.
    await sleep(5)
    await expect(answered).rejects.toThrow("too late")
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

  it("rejects at once with the signal's reason, whether the work succeeds or fails afterwards", async () => {
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

describe("abortedAfter", () => {
  const late = (): Error => new Error("too late")

  it("returns the result and leaves no timer", async () => {
    vi.useFakeTimers()
    try {
      const { signal } = new AbortController()
      expect(await abortedAfter(60_000, signal, late, async ({ aborted }) => aborted)).toBe(false)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it("aborts the work after the timeout, and rejects even if the work goes on", async () => {
    let seen: AbortSignal | undefined
    const run = (signal: AbortSignal): Promise<never> => {
      seen = signal
      return never
    }
    await expect(abortedAfter(5, undefined, late, run)).rejects.toThrow("too late")
    expect(seen?.reason).toEqual(new Error("too late"))
  })

  it("aborts the work with the caller's reason", async () => {
    const aborting = new AbortController()
    const working = abortedAfter(60_000, aborting.signal, late, () => never)
    aborting.abort(new Error("enough"))
    await expect(working).rejects.toThrow("enough")
  })

  it("does not start the work if the caller's signal was already aborted", async () => {
    const run = vi.fn()
    const reason = new Error("enough")
    await expect(abortedAfter(5, AbortSignal.abort(reason), late, run)).rejects.toBe(reason)
    expect(run).not.toHaveBeenCalled()
  })
})

describe("work in steps", () => {
  function* steps(onStep: () => void = () => undefined): Steps<string> {
    for (let i = 0; i < 3; i++) {
      onStep()
      yield
    }
    return "done"
  }

  it("is done synchronously by atOnce", () => {
    expect(atOnce(steps())).toBe("done")
  })

  it("is done in slices of a millisecond, so that timers can fire in between", async () => {
    let turns = 0
    const turning = setInterval(() => turns++, 0)
    try {
      expect(await inSlices(steps(() => blockEventLoop(3)))).toBe("done")
      expect(turns).toBeGreaterThan(0)
    } finally {
      clearInterval(turning)
    }
  })

  it("rejects if a step throws", async () => {
    const failing = steps(() => {
      throw new Error("step")
    })
    await expect(inSlices(failing)).rejects.toThrow("step")
  })
})
