import { mock } from "node:test"
import { ModernFakeTimers } from "@jest/fake-timers"
import FakeTimers from "@sinonjs/fake-timers"
import { createLimiter, type Limiter } from "@sluice/core"
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest"

/** A library that replaces timers and the clock, as tests use it. */
interface Library {
  /** Replaces timers and the clock. A member is undefined if the library does not support it. */
  install(): { readonly tick?: (ms: number) => void; readonly setSystemTime?: (epochMs: number) => void }
  uninstall(): void
}

const jest = new ModernFakeTimers({
  global: globalThis,
  config: { rootDir: ".", fakeTimers: {} } as ConstructorParameters<typeof ModernFakeTimers>[0]["config"],
})
let sinon: ReturnType<typeof FakeTimers.install>

const LIBRARIES: readonly (readonly [string, Library])[] = [
  [
    "node:test",
    {
      install: () => {
        mock.timers.enable()
        return { tick: (ms) => mock.timers.tick(ms), setSystemTime: (ms) => mock.timers.setTime(ms) }
      },
      uninstall: () => mock.timers.reset(),
    },
  ],
  [
    "node:test with Date alone, from another date",
    {
      install: () => {
        mock.timers.enable({ apis: ["Date"], now: Date.UTC(2031, 0, 1) })
        return { tick: (ms) => mock.timers.tick(ms), setSystemTime: (ms) => mock.timers.setTime(ms) }
      },
      uninstall: () => mock.timers.reset(),
    },
  ],
  [
    "vitest",
    {
      install: () => {
        vi.useFakeTimers()
        return { tick: (ms) => vi.advanceTimersByTime(ms), setSystemTime: (ms) => vi.setSystemTime(ms) }
      },
      uninstall: () => vi.useRealTimers(),
    },
  ],
  [
    "vitest's setSystemTime, which replaces Date alone",
    {
      install: () => {
        vi.setSystemTime(Date.now())
        return { setSystemTime: (ms) => vi.setSystemTime(ms) }
      },
      uninstall: () => vi.useRealTimers(),
    },
  ],
  [
    "vitest with Date alone",
    {
      install: () => {
        vi.useFakeTimers({ toFake: ["Date"] })
        return { tick: (ms) => vi.advanceTimersByTime(ms), setSystemTime: (ms) => vi.setSystemTime(ms) }
      },
      uninstall: () => vi.useRealTimers(),
    },
  ],
  [
    "vitest with setTimeout and performance alone",
    {
      install: () => {
        vi.useFakeTimers({ toFake: ["setTimeout", "performance"] })
        return { tick: (ms) => vi.advanceTimersByTime(ms) }
      },
      uninstall: () => vi.useRealTimers(),
    },
  ],
  [
    "jest",
    {
      install: () => {
        jest.useFakeTimers()
        return { tick: (ms) => jest.advanceTimersByTime(ms), setSystemTime: (ms) => jest.setSystemTime(ms) }
      },
      uninstall: () => jest.useRealTimers(),
    },
  ],
  [
    "sinon",
    {
      install: () => {
        sinon = FakeTimers.install()
        return { tick: (ms) => void sinon.tick(ms), setSystemTime: (ms) => sinon.setSystemTime(ms) }
      },
      uninstall: () => void sinon.uninstall(),
    },
  ],
]

const MINUTE = 60_000
const CLIENT = { remoteAddress: "192.0.2.1" }

function limiterOf(): Limiter {
  const limiter = createLimiter({ limit: 1, window: "1 minute" })
  onTestFinished(() => limiter.close())
  return limiter
}

/** Expects that the limit of one per minute is used up, and available again after `move`. */
async function expectToMove(limiter: Limiter, move: (ms: number) => void): Promise<void> {
  const first = await limiter.decide(CLIENT)
  const refused = await limiter.decide(CLIENT)
  expect([first.allowed, refused.allowed]).toEqual([true, false])
  move(refused.retryAfterMs - 1)
  expect((await limiter.decide(CLIENT)).allowed).toBe(false)
  move(1)
  expect((await limiter.decide(CLIENT)).allowed).toBe(true)
}

describe.each(LIBRARIES)("the fake timers of %s", (_name, { install, uninstall }) => {
  afterEach(uninstall)

  it("advance a limiter's clock when timers are advanced or the system time is changed", async () => {
    const { tick, setSystemTime } = install()
    const moves = [tick, setSystemTime && ((ms: number) => setSystemTime(Date.now() + ms))]
    for (const move of moves) if (move !== undefined) await expectToMove(limiterOf(), move)
  })

  it("do not affect a limiter after they are uninstalled", async () => {
    install()
    uninstall()
    const limiter = limiterOf()
    await limiter.decide(CLIENT)
    const { retryAfterMs } = await limiter.decide(CLIENT)
    expect(retryAfterMs).toBeGreaterThan(0)
    expect(retryAfterMs).toBeLessThanOrEqual(MINUTE + 1)
  })

  it("advance the clock of a limiter whose module is loaded while they are installed, if they fake Date", async (context) => {
    const { setSystemTime } = install()
    if (setSystemTime === undefined)
      return context.skip("only Date tells what a module that is loaded now has to follow")
    // Load a separate copy of the module, because each test file of Jest does so. Later test files load modules with
    // real timers.
    vi.resetModules()
    onTestFinished(() => void vi.resetModules())
    const own: typeof import("@sluice/core") = await import("@sluice/core")
    const limiter = own.createLimiter({ limit: 1, window: "1 minute" })
    onTestFinished(() => limiter.close())
    await expectToMove(limiter, (ms) => setSystemTime(Date.now() + ms))
  })
})

it.each(LIBRARIES.filter(([name]) => !name.includes("alone")))(
  "the fake timers of %s wake a request that waits in the queue",
  async (_name, { install, uninstall }) => {
    const { tick } = install()
    onTestFinished(uninstall)
    const limiter = limiterOf()
    await limiter.decide(CLIENT)
    let admitted = false
    void limiter.acquire(CLIENT).then(() => {
      admitted = true
    })
    // Wait as many turns of the event loop as needed, without a timer.
    for (let seconds = 0; seconds < 62 && !admitted; seconds++) {
      for (let turn = 0; turn < 50; turn++) await Promise.resolve()
      tick?.(1_000)
    }
    for (let turn = 0; turn < 50; turn++) await Promise.resolve()
    expect(admitted).toBe(true)
  },
)

it.each<[string, () => (ms: number) => unknown, () => unknown]>([
  [
    "node:test without Date",
    () => {
      mock.timers.enable({ apis: ["setTimeout"] })
      return (ms) => mock.timers.tick(ms)
    },
    () => mock.timers.reset(),
  ],
  [
    "vitest without Date and performance",
    () => {
      vi.useFakeTimers({ toFake: ["setTimeout"] })
      return (ms) => vi.advanceTimersByTime(ms)
    },
    () => vi.useRealTimers(),
  ],
  [
    "sinon without Date and performance",
    () => {
      sinon = FakeTimers.install({ toFake: ["setTimeout"] })
      return (ms) => sinon.tick(ms)
    },
    () => sinon.uninstall(),
  ],
  [
    "jest without Date and performance",
    () => {
      jest.useFakeTimers({ doNotFake: ["Date", "performance"] })
      return (ms) => jest.advanceTimersByTime(ms)
    },
    () => jest.useRealTimers(),
  ],
])(
  "the fake timers of %s do not advance a limiter's clock, as the guide says",
  async (_name, install, uninstall) => {
    const tick = install()
    onTestFinished(() => void uninstall())
    const limiter = limiterOf()
    await limiter.decide(CLIENT)
    tick(2 * MINUTE)
    expect((await limiter.decide(CLIENT)).allowed).toBe(false)
  },
)
