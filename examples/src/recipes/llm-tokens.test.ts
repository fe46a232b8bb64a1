import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./llm-tokens.ts"

/** What the model does next. "hold" waits until `resume` is called, "break" closes the connection. */
type Step = { readonly data: object } | "hold" | "break"

const clock = manualClock()
let script: readonly Step[]
let status: number
let resume: () => void
let held: Promise<void>
/** Number of requests that the model has begun, and that were aborted. */
let begun: number
let aborted: number
let model: Server
let server: Served

const USED_250: Step = { data: { choices: [], usage: { total_tokens: 250 } } }
const TEXT: Step = { data: { choices: [{ delta: { content: "Hello" } }], usage: null } }

beforeEach(async () => {
  clock.resetAll()
  status = 200
  begun = 0
  aborted = 0
  held = new Promise((resolve) => {
    resume = resolve
  })
  model = createServer(async (_req, res) => {
    begun++
    res.on("close", () => (aborted += res.writableEnded ? 0 : 1))
    res.writeHead(status, { "content-type": "text/event-stream" }).flushHeaders()
    for (const step of script) {
      if (step === "hold") await held
      else if (step === "break") return res.destroy()
      else res.write(`data: ${JSON.stringify(step.data)}\n\n`)
    }
    return res.end()
  }).listen(0, "127.0.0.1")
  await once(model, "listening")
  const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}`
  const ask = (body: object, signal: AbortSignal) =>
    fetch(url, { method: "POST", body: JSON.stringify(body), signal })
  server = await serve(createApp(ask, (req) => req.get("x-account"), { clock }))
})
afterEach(async () => {
  resume()
  await server.close()
  model.closeAllConnections()
  model.close()
})

/** Sends a prompt. With its JSON, it has `length` bytes. */
function chat(steps: readonly Step[], length = 1_000, signal?: AbortSignal) {
  script = steps
  return fetch(`${server.url}/chat`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-account": "ann" },
    body: JSON.stringify({ prompt: "p".repeat(length - '{"prompt":""}'.length) }),
    ...(signal && { signal }),
  })
}
/** Returns the remaining tokens, from the response to a request that reserves 1,020 tokens and uses none. */
async function left(): Promise<number> {
  const response = await chat([{ data: { usage: { total_tokens: 0 } } }], 20)
  await response.text()
  return Number(/"tpm";r=(\d+)/.exec(response.headers.get("ratelimit") ?? "")?.[1]) + 1_020
}
async function violated(response: Response): Promise<unknown> {
  return [response.status, ((await response.json()) as Record<string, unknown>)["violated-policies"]]
}

describe("the LLM tokens recipe", () => {
  it("reserves tokens while a response is streamed, and corrects the count at its end", async () => {
    const response = await chat([TEXT, "hold", USED_250])
    expect(response.headers.get("ratelimit")).toContain('"tpm";r=8000')
    expect(await left()).toBe(8_000)
    resume()
    expect(await response.text()).toContain("Hello")
    expect(response.headers.get("content-type")).toContain("text/event-stream")
    expect(await left()).toBe(9_750)
  })

  it("refuses a request that could use more than the remaining tokens, with the exact wait", async () => {
    const used = { data: { usage: { total_tokens: 3_000 } } }
    for (let time = 0; time < 3; time++) await (await chat([used])).text()
    const refused = await chat([TEXT], 1_001)
    const seconds = Number(refused.headers.get("retry-after"))
    expect(await violated(refused)).toEqual([429, ["tpm"]])
    clock.advance((seconds - 1) * 1000)
    expect((await chat([TEXT], 1_001)).status).toBe(429)
    clock.advance(1000)
    expect((await chat([TEXT], 1_001)).status).toBe(200)
  })

  it("refuses a sixth stream, which takes no units, until one of five ends", async () => {
    const streams = await Promise.all(Array.from({ length: 5 }, () => chat([TEXT, "hold", USED_250], 20)))
    expect(await violated(await chat([TEXT], 20))).toEqual([429, ["streams"]])
    resume()
    for (const stream of streams) await stream.text()
    expect(await left()).toBe(10_000 - 5 * 250)
  })

  it("takes no tokens for a request that the limit on requests refuses", async () => {
    for (let time = 0; time < 60; time++) await left()
    expect(await violated(await chat([], 20))).toEqual([429, ["rpm"]])
    // All requests of the previous minute still count at its end, and all tokens are left.
    clock.advance(90_000)
    expect(await left()).toBe(10_000)
  })

  it("stops the model when the client hangs up, frees its stream, and leaves the estimate charged", async () => {
    for (let time = 0; time < 6; time++) {
      const hangUp = new AbortController()
      const response = await chat([TEXT, "hold", USED_250], 20, hangUp.signal)
      expect(response.status).toBe(200)
      hangUp.abort()
      while (aborted <= time) await new Promise(setImmediate)
    }
    expect(await left()).toBe(10_000 - 6 * 1_020)
  })

  it.each([400, 503])("charges nothing if the model responds with %i", async (failed) => {
    status = failed
    const response = await chat([{ data: { error: "overloaded" } }])
    expect([response.status, await response.text()]).toEqual([failed, expect.stringContaining("overloaded")])
    status = 200
    expect(await left()).toBe(10_000)
  })

  it("charges nothing if the model cannot be reached", async () => {
    model.closeAllConnections()
    await new Promise((resolve) => model.close(resolve))
    for (let time = 0; time < 10; time++) expect((await chat([TEXT])).status).toBe(500)
    expect(begun).toBe(0)
  })

  it("leaves the estimate charged if the model breaks off", async () => {
    const response = await chat([TEXT, "hold", "break"])
    resume()
    await expect(response.text()).rejects.toThrow("terminated")
    expect(await left()).toBe(8_000)
  })
})
