import { once } from "node:events"
import { manualClock } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./llm-tokens.ts"

/** The tokens of a piece, or the error of a model that fails. "hold" makes the model wait until `resume` is called. */
type Step = number | Error | "hold"

const clock = manualClock()
let script: readonly Step[]
let resume: () => void
let held: Promise<void>
/** Number of streams that the signal has ended. */
let ended: number
let server: Served

async function* ask(prompt: string, signal: AbortSignal) {
  let tokens = prompt.length / 4
  for (const step of script) {
    if (step instanceof Error) throw step
    if (step === "hold") {
      await Promise.race([held, once(signal, "abort")])
      if (signal.aborted) ended++
      signal.throwIfAborted()
    } else {
      tokens += step
      yield { text: `${step} `, tokens }
    }
  }
}

beforeEach(async () => {
  clock.set(Date.UTC(2024, 0, 1))
  ended = 0
  held = new Promise((resolve) => {
    resume = resolve
  })
  server = await serve(createApp(ask, (req) => req.get("x-account"), { clock }))
})
afterEach(() => server.close())

function chat(steps: readonly Step[], promptLength = 1_000, signal?: AbortSignal) {
  script = steps
  return fetch(`${server.url}/chat`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-account": "ann" },
    body: JSON.stringify({ prompt: "p".repeat(promptLength) }),
    ...(signal && { signal }),
  })
}
const leftAfter = ({ headers }: Response) =>
  Number(/"tokens";r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1])
/** Returns the remaining tokens, from the response to a request that reserves 1,004 tokens and uses none. */
async function left(): Promise<number> {
  const response = await chat([], 4)
  await response.text()
  return leftAfter(response) + 1_004
}

describe("the LLM tokens recipe", () => {
  it("reserves tokens while a response is streamed, and corrects the count at its end", async () => {
    const answer = await chat([100, "hold", 150])
    expect(leftAfter(answer)).toBe(8_000)
    expect(await left()).toBe(8_000)
    resume()
    expect(await answer.text()).toBe("100 150 ")
    // 250 tokens are for the prompt, and 250 for the response.
    expect(await left()).toBe(9_500)
  })

  it("refuses a request that could use more than the remaining tokens, with the exact wait", async () => {
    for (let time = 0; time < 3; time++) await (await chat([1_000], 4_000)).text()
    const refused = await chat([10], 3_001)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ "violated-policies": ["tokens"] })
    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1000)
    expect((await chat([10], 3_001)).status).toBe(429)
    clock.advance(1000)
    expect((await chat([10], 3_001)).status).toBe(200)
  })

  it("takes no tokens for a request that the limit on requests refuses", async () => {
    for (let time = 0; time < 60; time++) await (await chat([], 4)).text()
    expect(await (await chat([], 4)).json()).toMatchObject({ "violated-policies": ["requests"] })
    clock.advance(60_000)
    // All requests of the previous minute still count, and all tokens are left.
    clock.advance(30_000)
    expect(await left()).toBe(10_000)
  })

  it("stops the model when the client hangs up, and charges the tokens until then", async () => {
    const hangUp = new AbortController()
    await chat([100, "hold", 400], 1_000, hangUp.signal)
    hangUp.abort()
    while (ended === 0) await new Promise(setImmediate)
    expect(await left()).toBe(10_000 - 250 - 100)
  })

  it("charges nothing if the model fails before the first piece", async () => {
    expect((await chat([new Error("The model is overloaded.")])).status).toBe(500)
    expect(await left()).toBe(10_000)
  })

  it("charges the tokens that were used before the model failed", async () => {
    const answer = await chat([100, "hold", new Error("The model is overloaded.")])
    resume()
    await expect(answer.text()).rejects.toThrow("terminated")
    expect(await left()).toBe(10_000 - 250 - 100)
  })
})
