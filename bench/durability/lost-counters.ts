import type { RedisServer } from "../redis/server.ts"
import { usedMemory } from "../redis/server.ts"
import { openMonth } from "./month.ts"

const UNITS = 100
const AT_ONCE = 100

/** Returns the units that clients get in one month if Redis loses all counters in it, as a multiple of the limit. */
export async function measureAllLost(server: RedisServer, clients: number): Promise<number> {
  let units = 0
  for (let time = 0; time < 2; time++) {
    await server.command("FLUSHALL", "SYNC")
    units += await takeAll(server, 0, clients)
  }
  return units / (UNITS * clients)
}

/**
 * Returns the share of clients that get their limit a second time, because Redis evicted their counters. Memory is
 * full when the clients have used up their limit, and then as many other clients arrive.
 */
export async function measureEvicted(server: RedisServer, clients: number, policy: string): Promise<number> {
  await server.command("FLUSHALL", "SYNC")
  await takeAll(server, 0, clients)
  await server.command("CONFIG", "SET", "maxmemory-policy", policy)
  await server.command("CONFIG", "SET", "maxmemory", await usedMemory(server))
  await takeAll(server, clients, clients)
  await server.command("CONFIG", "SET", "maxmemory", 0)
  return (await takeAll(server, 0, clients)) / (UNITS * clients)
}

/** Takes all remaining units of clients, and returns their number. */
async function takeAll(server: RedisServer, first: number, clients: number): Promise<number> {
  const { limiter, close } = await openMonth(server.port, UNITS)
  let units = 0
  for (let done = 0; done < clients; done += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, clients - done) }, (_, i) => first + done + i)
    const taken = await Promise.all(some.map((nth) => limiter.takeUpTo({ account: `${nth}` }, UNITS)))
    for (const { cost } of taken) units += cost
  }
  await close()
  return units
}
