import { expect, it } from "vitest"
import { commandsOf } from "../../packages/redis/src/clients/commands-of.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { Example, MINUTE, type OpenStore, onRedis } from "./example.ts"

// The documents estimate the bytes of a client with a limit of 500 an hour, times a million clients. These examples
// compare the bytes of one client in a real Redis. `bench:algorithms --only memory` measures a million clients.
// docs/inside/worked-examples.md lists the examples by the beginnings of their titles.

const { client } = await redisForTests()

// No key expires within the test.
const open: OpenStore = (clock) => onRedis(commandsOf(client), clock)

/** Returns the bytes of the only key: its name, its value and its place in the table of keys. */
async function bytesOfOneClient(): Promise<number> {
  const [key = "", ...others] = await client.keys("*")
  expect(others).toEqual([])
  const bytes = Number(await client.call("MEMORY", "USAGE", key))
  await client.del(key)
  return bytes
}

const perHour = { limit: 500, window: "1 hour" } as const

it("32 MB: a counter takes more than the document's 32 bytes, because a Redis key alone takes more", async () => {
  const example = new Example(open, { ...perHour, algorithm: "fixed-window" })
  expect(await example.ask(0, 501)).toBe(500)
  const bytes = await bytesOfOneClient()
  expect(bytes).toBeGreaterThan(32)
  expect(bytes).toBeLessThan(160)
  await client.set("x", 1, "EX", 60)
  expect(await bytesOfOneClient()).toBeGreaterThan(32)
})

it("12 GB: a log of 500 requests takes less than a quarter of the document's 12,028 bytes", async () => {
  const example = new Example(open, { ...perHour, algorithm: "sliding-log" })
  for (let i = 0; i < 500; i++) expect(await example.ask(i * 7_000)).toBe(1)
  expect(await bytesOfOneClient()).toBeLessThan((8 + 24 * 500 + 20) / 4)
})

it("1.6 GB: 60 counts, one for each minute, take less than a quarter of the document's 1,588 bytes", async () => {
  const example = new Example(open, { ...perHour, buckets: 60 })
  for (let minute = 0; minute < 60; minute++) expect(await example.ask(minute * MINUTE, 8)).toBe(8)
  expect(await bytesOfOneClient()).toBeLessThan((8 + 26 * 60 + 20) / 4)
})
