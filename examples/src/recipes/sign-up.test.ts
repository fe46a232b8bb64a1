import { expectLimited, manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./sign-up.ts"

const clock = manualClock()
let accounts: Set<string>
let isDown: boolean
let server: Served

beforeEach(async () => {
  clock.resetAll()
  accounts = new Set()
  isDown = false
  const app = await createApp(
    async (email) => {
      if (isDown) throw new Error("The database does not respond.")
      if (accounts.has(email)) return "taken"
      accounts.add(email)
      return "created"
    },
    { clock, trustedProxies: ["loopback"] },
  )
  server = await serve(app)
})
afterEach(() => server.close())

const signUp = (email: unknown, from = "203.0.113.1") =>
  fetch(`${server.url}/accounts`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-forwarded-for": from },
    body: JSON.stringify({ email }),
  })

async function statuses(times: number, one: (time: number) => Promise<Response>): Promise<number[]> {
  const seen: number[] = []
  for (let time = 0; time < times; time++) seen.push((await one(time)).status)
  return seen
}
const times = (count: number, status: number) => Array<number>(count).fill(status)

describe("the sign-up recipe", () => {
  it("admits five accounts an hour from a network, and the next account after the stated wait", async () => {
    let host = 0
    const refused = await expectLimited(() => signUp(`${++host}@gmail.com`, `2001:db8:1:${host}::1`), 5)
    expect(await refused.json()).toMatchObject({ "violated-policies": ["network"] })
    expect((await signUp("7@gmail.com", "2001:db8:2::1")).status).toBe(201)

    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1000)
    expect((await signUp("8@gmail.com", "2001:db8:1::8")).status).toBe(429)
    clock.advance(1000)
    expect((await signUp("8@gmail.com", "2001:db8:1::8")).status).toBe(201)
  })

  it("admits twenty accounts a day for a mail domain and its subdomains", async () => {
    const from = (time: number) => `198.51.100.${time}`
    const seen = await statuses(21, (time) => signUp(`a@s${time}.spam.co.uk`, from(time)))
    expect(seen).toEqual([...times(20, 201), 429])
    expect((await signUp("a@SPAM.CO.UK", from(30))).status).toBe(429)
    expect((await signUp("a@other.co.uk", from(31))).status).toBe(201)
  })

  it("does not limit large mail providers by domain", async () => {
    const seen = await statuses(50, (time) => signUp(`${time}@gmail.com`, `198.51.100.${time}`))
    expect(seen).toEqual(times(50, 201))
  })

  it("counts neither invalid forms nor forms that fail because of a server error", async () => {
    expect(await statuses(10, () => signUp(undefined))).toEqual(times(10, 400))
    isDown = true
    expect(await statuses(10, () => signUp("ann@gmail.com"))).toEqual(times(10, 500))
    isDown = false
    expect(await statuses(6, (time) => signUp(`${time}@gmail.com`))).toEqual([...times(5, 201), 429])
  })

  it("counts forms with an address that is already registered", async () => {
    accounts.add("ann@gmail.com")
    expect(await statuses(6, () => signUp("ann@gmail.com"))).toEqual([...times(5, 409), 429])
  })
})
