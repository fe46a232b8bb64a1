import { type Decision, manualClock } from "@sluice/core"
import { beforeEach, describe, expect, it } from "vitest"
import { limitMessages, type Message } from "./marketing-messages.ts"

const clock = manualClock()
let outbox: Message[]
let isDown: boolean
let send: (message: Message) => Promise<Decision>

beforeEach(() => {
  clock.set(Date.UTC(2024, 0, 1))
  outbox = []
  isDown = false
  send = limitMessages(
    async (message) => {
      if (isDown) throw new Error("The mail server is down.")
      outbox.push(message)
    },
    { clock },
  )
})

async function sendMany(times: number, userId = "ann"): Promise<Decision[]> {
  const all: Decision[] = []
  for (let time = 0; time < times; time++) all.push(await send({ userId, text: `offer ${time}` }))
  return all
}

describe("marketing messages", () => {
  it("are limited to five a day per user", async () => {
    const all = await sendMany(8)
    expect(all.map(({ allowed }) => allowed)).toEqual([true, true, true, true, true, false, false, false])
    expect(all[0]?.checks).toMatchObject([{ limit: 5, windowMs: 86_400_000 }])
    expect(outbox.map(({ text }) => text)).toEqual(["offer 0", "offer 1", "offer 2", "offer 3", "offer 4"])
    expect((await sendMany(1, "bob"))[0]).toMatchObject({ allowed: true, remaining: 4 })
  })

  it("can be sent exactly when the returned wait is over if they were held back", async () => {
    const kept = (await sendMany(6))[5] as Decision
    expect(kept.allowed).toBe(false)
    clock.advance(kept.retryAfterMs - 1)
    expect((await sendMany(1))[0]).toMatchObject({ allowed: false, retryAfterMs: 1 })
    clock.advance(1)
    expect((await sendMany(1))[0]).toMatchObject({ allowed: true })
  })

  it("do not count if they could not be sent", async () => {
    isDown = true
    for (let time = 0; time < 20; time++) await expect(sendMany(1)).rejects.toThrow("mail server")
    isDown = false
    expect((await sendMany(6)).map(({ allowed }) => allowed)).toEqual([true, true, true, true, true, false])
  })
})
