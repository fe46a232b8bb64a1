import { manualClock } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./login.ts"

const clock = manualClock()
let checked: string[]
/** The password check waits for this promise while it is set. */
let gate: Promise<void> | undefined
let server: Served

beforeEach(async () => {
  clock.set(Date.UTC(2024, 0, 1))
  checked = []
  gate = undefined
  const app = createApp(
    async (email, password) => {
      checked.push(password)
      await gate
      return password === "right" && email.toLowerCase() === "ann@example.com"
    },
    { clock, trustedProxies: ["loopback"] },
  )
  server = await serve(app)
})
afterEach(() => server.close())

const login = (password: unknown, { email = "ann@example.com" as unknown, from = "203.0.113.1" } = {}) =>
  fetch(`${server.url}/login`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-forwarded-for": from },
    body: JSON.stringify({ email, password }),
  })

async function statuses(times: number, one: () => Promise<Response>): Promise<number[]> {
  const seen: number[] = []
  for (let time = 0; time < times; time++) seen.push((await one()).status)
  return seen
}

describe("login", () => {
  it("refuses the sixth wrong password in a minute, and returns the wait", async () => {
    expect(await statuses(5, () => login("wrong"))).toEqual([401, 401, 401, 401, 401])

    const refused = await login("right")
    expect(refused.status).toBe(429)
    expect(refused.headers.get("ratelimit-policy")).toBe('"login";q=5;w=60')
    const seconds = Number(refused.headers.get("retry-after"))
    // The rest of the minute and one millisecond, rounded up. All five requests came at the start of the minute.
    expect(seconds).toBe(61)
    expect(await refused.json()).toMatchObject({
      detail: `The quota is used up. Try again in ${seconds} seconds.`,
      "violated-policies": ["login"],
    })
    expect(checked).toHaveLength(5)

    clock.advance((seconds - 1) * 1000)
    expect((await login("right")).status).toBe(429)
    clock.advance(1000)
    expect((await login("right")).status).toBe(200)
  })

  it("refunds an attempt with the correct password, so that frequent logins are not refused", async () => {
    expect(await statuses(20, () => login("right"))).toEqual(Array(20).fill(200))
    expect(await statuses(6, () => login("wrong"))).toEqual([401, 401, 401, 401, 401, 429])
  })

  it("checks only five of thirty passwords that are sent at the same time", async () => {
    let open = (): void => {}
    gate = new Promise((resolve) => {
      open = resolve
    })
    const guesses = Array.from({ length: 30 }, (_, guess) => login(guess === 29 ? "right" : `guess ${guess}`))
    // Refusals are answered while the other requests still wait for their password check.
    let refused = 0
    await new Promise<void>((resolve) => {
      for (const guess of guesses) {
        guess.then(({ status }) => {
          if (status === 429 && ++refused === 25) resolve()
        })
      }
    })
    expect(checked).toHaveLength(5)
    open()
    await Promise.all(guesses)
    expect(checked).toHaveLength(5)
  })

  it("counts each combination of account and address", async () => {
    await statuses(5, () => login("wrong"))
    expect((await login("wrong")).status).toBe(429)
    expect((await login("wrong", { from: "203.0.113.2" })).status).toBe(401)
    expect((await login("wrong", { email: "bob@example.com" })).status).toBe(401)
  })

  it("counts other spellings of an account as the same account", async () => {
    await statuses(5, () => login("wrong"))
    expect((await login("wrong", { email: " ANN@Example.com " })).status).toBe(429)
  })

  it("counts by address if there is no valid account", async () => {
    const accounts: unknown[] = [7, null, ["ann@example.com"], { ann: 1 }, "", {}]
    const seen: number[] = []
    for (const email of accounts) seen.push((await login("wrong", { email })).status)
    expect(seen).toEqual([401, 401, 401, 401, 401, 429])
  })
})
