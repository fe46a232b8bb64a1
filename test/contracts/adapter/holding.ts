import { setImmediate as nextTurn } from "node:timers/promises"
import { createLimiter, type Decision, type ManualClock, type Rule } from "@sluice/core"
import { describe, expect } from "vitest"
import { askAndHangUp, type Response } from "./ask.ts"
import type { Options } from "./plan.ts"
import { type Behaves, type Client, type Stage, told } from "./stage.ts"

/** One request leaves every 100 ms, and five fit in. */
const LEAKY = { limit: 10, window: "1 second", algorithm: "leaky-bucket", burst: 5 } as const
/** Two requests per second; a request that comes too early waits for the next second. */
const QUEUE = {
  limit: 2,
  window: "1 second",
  algorithm: "fixed-window",
  throttle: { kind: "queue", maxWaiting: 3, maxWaitMs: 2_000 },
} as const

/** An app with one route, and a record of its requests. */
class Served {
  /** When each request reached the handler, in milliseconds since the start, and its name: "100 a". */
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

  /** Sends a request, and resolves when it has reached the limiter. The next request then comes after it. */
  async ask(name: string): Promise<{ readonly response: Promise<Response> }> {
    const before = this.arrived
    const response = (this.#client as Client)("/", { headers: { "X-Name": name } })
    await until(() => this.arrived > before)
    return { response }
  }

  /** Advances the clock in steps, with time in between for released requests to continue. */
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

/** Registers the behaviors of queuing rules, which hold requests until they fit. */
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

    behaves(
      "holds no more units than a leaky bucket has room for, and refuses all others at once",
      async (stage) => {
        const served = new Served(stage)
        const bucket = { limit: 50, window: "1 second", algorithm: "leaky-bucket", burst: 10 } as const
        await served.start(stage, served.counting({ ...stage.base, ...bucket }))
        const asked: Promise<Response>[] = []
        for (let i = 0; i < 20; i++) asked.push((await served.ask(`${i}`)).response)
        // No time has passed. Ten units fit: the first goes through, and the others are held.
        const refused = await Promise.all(asked.slice(10))
        expect(refused.map(({ status }) => status)).toEqual(Array(10).fill(429))
        expect(refused.map(({ headers }) => headers["retry-after"])).toEqual(Array(10).fill("1"))
        expect(served.entries).toEqual(["0 0"])
        await served.pass(180, 20)
        for (const response of asked.slice(0, 10)) expect((await response).status).toBe(200)
        expect(served.entries).toEqual(Array.from({ length: 10 }, (_, i) => `${20 * i} ${i}`))
      },
    )

    behaves("has a line in front of a leaky bucket where the rule says so", async (stage) => {
      const served = new Served(stage)
      const throttle = { kind: "queue", maxWaiting: 2 } as const
      await served.start(stage, served.counting({ ...stage.base, ...LEAKY, throttle }))
      const asked: Awaited<ReturnType<Served["ask"]>>[] = []
      for (const name of ["a", "b", "c", "d", "e", "f", "g"]) asked.push(await served.ask(name))
      expect((await (await served.ask("h")).response).status).toBe(429)
      await served.pass(600)
      for (const { response } of asked) expect((await response).status).toBe(200)
      expect(served.entries).toEqual(["0 a", "100 b", "200 c", "300 d", "400 e", "500 f", "600 g"])
    })

    behaves("holds who does not fit until it does, in the order in which they came", async (stage) => {
      const served = new Served(stage)
      await served.start(stage, served.counting({ ...stage.base, ...QUEUE }))
      const asked: Awaited<ReturnType<Served["ask"]>>[] = []
      for (const name of ["a", "b", "c", "d", "e"]) asked.push(await served.ask(name))
      await served.pass(2_000, 250)
      const responses = await Promise.all(asked.map(({ response }) => response))
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
      expect(served.entries).toEqual(["0 a", "0 b", "1000 c", "1000 d", "2000 e"])
    })

    behaves("refuses at once who would be one too many, with a time to wait", async (stage) => {
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

    behaves("refuses at once who would have to wait too long", async (stage) => {
      const served = new Served(stage)
      const throttle = { kind: "queue", maxWaitMs: 999 } as const
      await served.start(stage, served.counting({ ...stage.base, ...QUEUE, throttle }))
      for (const name of ["a", "b"]) expect((await (await served.ask(name)).response).status).toBe(200)
      expect((await (await served.ask("c")).response).status).toBe(429)
      expect(served.entries).toEqual(["0 a", "0 b"])
    })

    for (const [who, requests] of [
      ["who hangs up, and of what it would have taken", 1],
      ["all whose connection is gone, those behind another one of it too", 3],
    ] as const) {
      behaves(`lets go of ${who}`, async (stage) => {
        const served = new Served(stage)
        await served.start(stage, served.counting({ ...stage.base, ...LEAKY }))
        expect((await (await served.ask("a")).response).status).toBe(200)
        const arrived = until(() => served.arrived === 1 + requests)
        await askAndHangUp(served.url, "/", arrived, requests)
        await turns()
        const next = await served.ask("b")
        await served.pass(400)
        // It is released when the first of the disconnected requests would have been.
        expect((await next.response).status).toBe(200)
        expect(served.entries).toEqual(["0 a", "100 b"])
      })
    }

    behaves("answers 503 to those that it holds when the limiter is closed", async (stage) => {
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

    behaves("does not hold who is refused by a rule beside it that does not queue", async (stage) => {
      const served = new Served(stage)
      const rules: Rule[] = [
        { ...QUEUE, name: "queue", field: "service", limit: 1 },
        { name: "hard", field: "service", limit: 2, window: "1 minute", algorithm: "fixed-window" },
      ]
      await served.start(stage, served.counting({ ...stage.base, rules }))
      expect((await (await served.ask("a")).response).status).toBe(200)
      const held = await served.ask("b")
      await served.pass(1_000, 500)
      expect((await held.response).status).toBe(200)
      const refused = await (await served.ask("c")).response
      expect([refused.status, JSON.parse(refused.body)["violated-policies"]]).toEqual([
        429,
        ["queue", "hard"],
      ])
      expect(served.entries).toEqual(["0 a", "1000 b"])
    })
  })

  behaves("a leaky bucket that is hard tells the delay, and does not hold", async (stage) => {
    const served = new Served(stage)
    await served.start(stage, served.counting({ ...stage.base, ...LEAKY, throttle: "hard" }))
    for (const name of ["a", "b", "c"]) expect((await (await served.ask(name)).response).status).toBe(200)
    expect(served.entries).toEqual(["0 a", "0 b", "0 c"])
    expect(served.decisions.map((decision) => decision?.delayMs)).toEqual([0, 100, 200])
  })

  behaves("a shadow rule holds nobody", async (stage) => {
    const served = new Served(stage)
    await served.start(stage, served.counting({ ...stage.base, ...QUEUE, shadow: true }))
    for (const name of ["a", "b", "c"]) {
      const response = await (await served.ask(name)).response
      expect([response.status, told(response)]).toEqual([200, []])
    }
    expect(served.entries).toEqual(["0 a", "0 b", "0 c"])
    expect(served.decisions.at(-1)?.shadowed).toEqual(["ip-1s"])
  })
}
