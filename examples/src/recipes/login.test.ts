import { manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./login.ts"

const clock = manualClock()
let checked: string[]
/** The password check waits for this promise. */
let gate: Promise<void>
let server: Served

beforeEach(async () => {
  clock.resetAll()
  checked = []
  gate = Promise.resolve()
  const app = createApp(
    async (email, password) => {
      checked.push(password)
      await gate
      if (password === "outage") throw new Error("The database does not respond.")
      return password === "right" && email === "ann@example.com"
    },
    { clock, trustedProxies: ["loopback"] },
  )
  server = await serve(app)
})
afterEach(() => server.close())

interface Guess {
  readonly email?: unknown
  readonly from?: string
  readonly signal?: AbortSignal
}
const login = (password: string, { email = "ann@example.com", from = "203.0.113.1", signal }: Guess = {}) =>
  fetch(`${server.url}/login`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-forwarded-for": from },
    body: JSON.stringify({ email, password }),
    ...(signal && { signal }),
  })

async function statuses(times: number, guess: (time: number) => Promise<Response>): Promise<number[]> {
  const seen: number[] = []
  for (let time = 0; time < times; time++) seen.push((await guess(time)).status)
  return seen
}
const waitOf = (refused: Response) => Number(refused.headers.get("retry-after"))
const times = (count: number, status: number) => Array<number>(count).fill(status)

describe("the login recipe", () => {
  it("refuses any password after five wrong passwords in 15 minutes, until the stated wait is over", async () => {
    expect(await statuses(5, () => login("wrong"))).toEqual(times(5, 401))
    const refused = await login("right")
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ "violated-policies": ["login"] })
    // The wait is the rest of the window plus one millisecond, rounded up. All five requests arrived at the start of
    // the window.
    expect(waitOf(refused)).toBe(901)
    expect(checked).toHaveLength(5)

    clock.advance(900_000)
    expect((await login("right")).status).toBe(429)
    clock.advance(1000)
    expect((await login("right")).status).toBe(200)
  })

  it("blocks a client that keeps guessing for longer each time", async () => {
    const waits: number[] = []
    for (let round = 0; round < 4; round++) {
      await statuses(10, () => login("wrong"))
      const refused = await login("right")
      expect(refused.status).toBe(429)
      waits.push(waitOf(refused))
      clock.advance(waitOf(refused) * 1000)
    }
    expect(waits).toEqual([1_800, 7_200, 43_200, 43_200])
    expect((await login("right")).status).toBe(200)
  })

  it("does not count correct passwords", async () => {
    expect(await statuses(20, () => login("right"))).toEqual(times(20, 200))
    expect(await statuses(6, () => login("wrong"))).toEqual([...times(5, 401), 429])
  })

  it("does not count attempts that fail because of a server error", async () => {
    expect(await statuses(10, () => login("outage"))).toEqual(times(10, 500))
    expect((await login("right")).status).toBe(200)
    expect(await statuses(6, () => login("wrong"))).toEqual([...times(5, 401), 429])
  })

  it("counts an attempt of a client that hangs up before the response", async () => {
    let open = (): void => undefined
    gate = new Promise((resolve) => {
      open = resolve
    })
    for (let guess = 1; guess <= 5; guess++) {
      const hangUp = new AbortController()
      const attempt = login("wrong", { signal: hangUp.signal })
      while (checked.length < guess) await new Promise(setImmediate)
      hangUp.abort()
      await expect(attempt).rejects.toThrow("aborted")
    }
    open()
    expect((await login("right")).status).toBe(429)
  })

  it("checks only five of thirty passwords that are sent at the same time", async () => {
    let open = (): void => undefined
    gate = new Promise((resolve) => {
      open = resolve
    })
    const guesses = Array.from({ length: 30 }, (_, guess) => login(guess === 29 ? "right" : `guess ${guess}`))
    // The refusals are sent while the other requests still wait for their password check.
    let refused = 0
    await new Promise<void>((resolve) => {
      for (const guess of guesses) {
        guess.then(({ status }) => {
          if (status === 429 && ++refused === 25) resolve()
        })
      }
    })
    open()
    await Promise.all(guesses)
    expect(checked).toHaveLength(5)
  })

  it("admits 30 wrong passwords from one address, even for different accounts", async () => {
    const seen = await statuses(31, (time) => login("wrong", { email: `user${time}@example.com` }))
    expect(seen).toEqual([...times(30, 401), 429])
    expect((await login("right", { from: "203.0.113.2" })).status).toBe(200)
  })

  it("admits 50 wrong passwords an hour for one account, even from different addresses", async () => {
    const from = (time: number) => `198.51.100.${time}`
    expect(await statuses(50, (time) => login("wrong", { from: from(time) }))).toEqual(times(50, 401))
    // More refusals do not prolong the wait of the owner.
    for (const minute of [0, 31]) {
      clock.set(Date.UTC(2024, 0, 1, 0, minute))
      const seen = await statuses(5, (time) => login("wrong", { from: from(100 + minute + time) }))
      expect(seen).toEqual(times(5, 429))
    }
    const owner = await login("right")
    expect([owner.status, waitOf(owner)]).toEqual([429, 3_601 - 31 * 60])
    clock.set(Date.UTC(2024, 0, 1, 1, 0, 1))
    expect((await login("right")).status).toBe(200)
  })

  it("treats different spellings of an email address as one account", async () => {
    const spellings = ["ANN@example.com", " ann@example.com", "ann@Example.com ", ["ann@example.com"]]
    for (const email of spellings) expect((await login("wrong", { email })).status).toBe(401)
    expect(await statuses(2, () => login("wrong"))).toEqual([401, 429])
  })
})
