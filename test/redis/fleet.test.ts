import { Redis } from "ioredis"
import { afterAll, describe, expect, it } from "vitest"
import { commandsOf } from "../../packages/core/src/stores/redis/clients/commands-of.ts"
import { Fleet } from "../../packages/core/src/stores/redis/fleet.ts"

const client = new Redis({ lazyConnect: true })
const commands = commandsOf(client)
const listener = { refused: () => undefined, grantedLate: () => undefined }
const time = { clock: undefined, isWide: false }

afterAll(() => client.disconnect())

/** Whether two keys, asked for by who waits so long, travel together. */
function travelTogether(isCluster: boolean, one: [string, number], other: [string, number]): boolean {
  const fleet = new Fleet({ ...commands, isCluster }, time, listener)
  try {
    return fleet.laneOf(...one) === fleet.laneOf(...other)
  } finally {
    fleet.close(new Error("over"))
  }
}

describe("requests travel together", () => {
  it.each<[what: string, isCluster: boolean, one: [string, number], other: [string, number], is: boolean]>([
    ["of all keys, to one server", false, ["{00}a", 50], ["{ff}b", 50], true],
    ["of one slot, in a cluster", true, ["{00}a", 50], ["{00}b", 50], true],
    ["of no two slots", true, ["{00}a", 50], ["{01}a", 50], false],
    // A call counts until the first of them stops waiting.
    ["of who waits about as long", false, ["{00}a", 33], ["{00}a", 63], true],
    ["of nobody who waits much longer", false, ["{00}a", 15], ["{00}a", 1_000], false],
  ])("%s", (_what, isCluster, one, other, is) => {
    expect(travelTogether(isCluster, one, other)).toBe(is)
  })
})
