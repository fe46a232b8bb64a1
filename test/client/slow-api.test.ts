import type { ServerResponse } from "node:http"
import { setImmediate as turn } from "node:timers/promises"
import { paced } from "@sluice/client"
import { expect, it, onTestFinished, vi } from "vitest"
import { listen } from "../contracts/adapter/listen.ts"

// The API takes longer to respond than a call may wait. The tests advance the clock of the client.

const CALLS = 20
/** The response time, which is longer than a call may wait by default. */
const RESPONSE_MS = 35_000

it("an API that takes 35 seconds responds to all of 20 calls with defaults", async () => {
  const { url, held, arrive, answerAll } = await startSlowApi()
  const statuses = callAll(url)
  await arrive(1)
  await vi.advanceTimersByTimeAsync(900)
  expect(held).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(RESPONSE_MS - 900)
  await arrive(CALLS)
  answerAll()
  expect(await statuses).toEqual(Array(CALLS).fill(200))
})

it("an API that takes 35 seconds responds to all calls after each used-up quota", async () => {
  const { url, arrive, answerAll } = await startSlowApi()
  const api = paced(fetch)
  const empty = { RateLimit: '"a";r=0;t=2', "RateLimit-Policy": '"a";q=40;w=2' }
  for (let quota = 0; quota < 2; quota++) {
    const first = api(url)
    await arrive(1)
    answerAll(empty)
    expect((await first).status).toBe(200)
    const statuses = callAll(url, api)
    await vi.advanceTimersByTimeAsync(RESPONSE_MS)
    await arrive(CALLS)
    answerAll(empty)
    expect(await statuses).toEqual(Array(CALLS).fill(200))
    await vi.advanceTimersByTimeAsync(3_000)
  }
})

it("calls that are sent while an earlier call is slow stop when one of them is refused", async () => {
  // With the largest jitter, each block is a quarter longer.
  const random = vi.spyOn(Math, "random").mockReturnValue(0.999)
  onTestFinished(() => random.mockRestore())
  const { url, held, arrive, answer, answerAll } = await startSlowApi()
  const api = paced(fetch)
  const statuses = callAll(url, api)
  await arrive(1)
  answer(0, 429, { "Retry-After": "2" })
  await blocked(api)
  await vi.advanceTimersByTimeAsync(2_500)
  // The first call gets no response for a second. Then the second call is sent, and refused.
  await arrive(1)
  await vi.advanceTimersByTimeAsync(1_000)
  await arrive(2)
  answer(1, 429, { "Retry-After": "4" })
  await blocked(api)
  await vi.advanceTimersByTimeAsync(3_900)
  await turns()
  expect(held).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(5_000)
  await arrive(CALLS)
  answerAll()
  expect(await statuses).toEqual(Array(CALLS).fill(200))
})

/** Sends calls at the same time. Resolves with their statuses, or the codes of their errors. */
function callAll(url: string, api = paced(fetch)): Promise<(number | string)[]> {
  const one = (): Promise<number | string> =>
    api(url).then(
      ({ status }) => status,
      ({ code, name }) => code ?? name,
    )
  return Promise.all(Array.from({ length: CALLS }, one))
}

/** Resolves when the client has processed a refusal. */
async function blocked(api: ReturnType<typeof paced>): Promise<void> {
  const isBlocked = (): boolean => api.status().some(({ blockedForMs }) => blockedForMs > 0)
  for (let i = 0; !isBlocked() && i < 20_000; i++) await turn()
  expect(isBlocked()).toBe(true)
}

async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await turn()
}

/** Starts an API whose responses are sent by the test. */
async function startSlowApi() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  const held: ServerResponse[] = []
  const { url, close } = await listen((_req, res) => void held.push(res))
  onTestFinished(async () => {
    vi.useRealTimers()
    await close()
  })
  const answer = (n: number, status: number, headers: Record<string, string> = {}): void =>
    void held.splice(n, 1)[0]?.writeHead(status, headers).end()
  return {
    ...{ url, held, answer },
    /** Resolves when this many calls are held. */
    async arrive(calls: number): Promise<void> {
      for (let i = 0; held.length < calls && i < 20_000; i++) await turn()
      expect(held).toHaveLength(calls)
    },
    answerAll(headers: Record<string, string> = {}): void {
      while (held.length > 0) answer(0, 200, headers)
    },
  }
}
