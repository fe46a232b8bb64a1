import { setImmediate as nextTurn } from "node:timers/promises"
import { createLimiter, type Decision } from "@sluice/core"
import type { ManualClock } from "@sluice/core/testing"
import { describe, expect } from "vitest"
import { askAndHangUp, type Response } from "./ask.ts"
import type { Options } from "./plan.ts"
import type { Behaves, Client, Stage } from "./stage.ts"

/** A bucket that releases one request every 100 ms and holds at most five. */
const LEAKY = { limit: 10, window: "1 second", algorithm: "leaky-bucket", burst: 5 } as const
/** Admits two requests per second. A request that arrives too early waits for the next second. */
const QUEUE = {
  limit: 2,
  window: "1 second",
  algorithm: "fixed-window",
  throttle: { kind: "queue", maxWaiting: 3, maxWaitMs: 2_000 },
} as const

/** An app with one route, and a record of its requests. */
class Served {
  /**
   * The milliseconds from the start until each request reached the handler, and the request's name, such as "100 a".
   */
  readonly entries: string[] = []
  readonly decisions: (Decision | undefined)[] = []
  arrived = 0
  readonly #clock: ManualClock
  readonly #startMs: number
  #client: Client | undefined

  constructor({ clock }: Stage) {
    this.#clock = clock
    this.#startMs = clock.now()
  }

  /** Returns `options` with a `skip` that counts the requests that reach the limiter. */
  counting<Given extends object>(options: Given): Given {
    const skip = () => {
      this.arrived++
      return false
    }
    return { ...options, skip }
  }

  async start({ start, adapter }: Stage, mount: Options): Promise<this> {
    const handle = (request: object) => {
      this.entries.push(`${this.#clock.now() - this.#startMs} ${adapter.headerOf(request, "x-name")}`)
      this.decisions.push(adapter.decisionOf(request))
      return {}
    }
    this.#client = await start({ mounts: [mount], routes: [{ path: "/", handle }] })
    return this
  }

  get url(): string {
    return (this.#client as Client).url
  }

  /** Sends a request, and resolves when the request has reached the limiter, so that the next request arrives later. */
  async ask(name: string): Promise<{ readonly response: Promise<Response> }> {
    const before = this.arrived
    const response = (this.#client as Client)("/", { headers: { "X-Name": name } })
    await until(() => this.arrived > before)
    return { response }
  }

  /** Advances the clock in steps. After each step, waits until released requests have continued. */
  async pass(ms: number, stepMs = 50): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      await turns()
      this.#clock.advance(stepMs)
    }
    await turns()
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await nextTurn()
}

/** Waits much longer than it takes to call a handler. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await nextTurn()
}

/** Registers the behaviors of queuing rules, which hold requests until the requests fit. */
export function holding(behaves: Behaves): void {
  describe("a rule that queues", () => {
    behaves("holds each request of a leaky bucket for its delay", async (stage) => {
      const served = new Served(stage)
      await served.start(stage, served.counting({ ...stage.base, ...LEAKY }))
      const asked = [await served.ask("a"), await served.ask("b"), await served.ask("c")]
      await served.pass(250)
      const responses = await Promise.all(asked.map(({ response }) => response))
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(served.entries).toEqual(["0 a", "100 b", "200 c"])
      expect(served.decisions.map((decision) => decision?.delayMs)).toEqual([0, 100, 200])
      expect(responses[1]?.headers["ratelimit-policy"]).toBe('"ip-1s";q=10;w=1')
    })

    behaves("holds requests above the limit until they fit, in order of arrival", async (stage) => {
      const served = new Served(stage)
      await served.start(stage, served.counting({ ...stage.base, ...QUEUE }))
      const asked: Awaited<ReturnType<Served["ask"]>>[] = []
      for (const name of ["a", "b", "c", "d", "e"]) asked.push(await served.ask(name))
      await served.pass(2_000, 250)
      const responses = await Promise.all(asked.map(({ response }) => response))
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
      expect(served.entries).toEqual(["0 a", "0 b", "1000 c", "1000 d", "2000 e"])
    })

    behaves("refuses a request immediately with Retry-After if the queue is full", async (stage) => {
      const served = new Served(stage)
      await served.start(stage, served.counting({ ...stage.base, ...QUEUE }))
      const asked: Awaited<ReturnType<Served["ask"]>>[] = []
      for (const name of ["a", "b", "c", "d", "e"]) asked.push(await served.ask(name))
      const refused = await (await served.ask("f")).response
      expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"])
      expect(JSON.parse(refused.body)["violated-policies"]).toEqual(["ip-1s"])
      await served.pass(2_000, 250)
      for (const { response } of asked) expect((await response).status).toBe(200)
      expect(served.entries.map((entry) => entry.slice(-1))).toEqual(["a", "b", "c", "d", "e"])
    })

    for (const [who, requests] of [
      ["the request of a client that hangs up, and its units", 1],
      ["all pipelined requests of a connection that is gone", 3],
    ] as const) {
      behaves(`releases ${who}`, async (stage) => {
        const served = new Served(stage)
        await served.start(stage, served.counting({ ...stage.base, ...LEAKY }))
        expect((await (await served.ask("a")).response).status).toBe(200)
        const arrived = until(() => served.arrived === 1 + requests)
        await askAndHangUp(served.url, "/", arrived, requests)
        await turns()
        const next = await served.ask("b")
        await served.pass(400)
        // The next request is released when the first of the disconnected requests would have been released.
        expect((await next.response).status).toBe(200)
        expect(served.entries).toEqual(["0 a", "100 b"])
      })
    }

    behaves("answers 503 to held requests when the limiter is closed", async (stage) => {
      const served = new Served(stage)
      const limiter = createLimiter<object>(served.counting({ ...stage.base, ...QUEUE }))
      await served.start(stage, { limiter })
      for (const name of ["a", "b"]) await (await served.ask(name)).response
      const held = [await served.ask("c"), await served.ask("d")]
      await limiter.close()
      for (const { response } of held) {
        const { status, headers, body } = await response
        expect([status, headers["retry-after"]]).toEqual([503, "1"])
        expect(JSON.parse(body).type).toMatch(/#temporary-reduced-capacity$/)
      }
      expect(served.entries).toEqual(["0 a", "0 b"])
    })
  })
}
