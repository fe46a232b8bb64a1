import { expect, it } from "vitest"
import { redisForTests } from "../../test/servers/redis-for-tests.ts"
import { lossOf, SETTINGS, type Setting } from "./losses.ts"
import { measureAllLost, measureEvicted } from "./lost-counters.ts"

const TRAFFIC = { perSecond: 1_000, killMs: 300 }

const { server } = await redisForTests()

function setting(name: string): Setting {
  const found = SETTINGS.find((each) => each.name === name)
  if (found === undefined) throw new Error(`there is no setting ${name}`)
  return found
}

it.each(["no persistence", "a replica, after an empty restart"])(
  "lossOf counts every admitted unit as lost with %s",
  async (name) => {
    const { admitted, lost, lostByOne } = await lossOf(setting(name), TRAFFIC)
    expect(lost).toBe(admitted)
    // The client sends every other request.
    expect(Math.abs(lostByOne - admitted / 2)).toBeLessThan(10)
    expect(lostByOne).toBeGreaterThan(0)
  },
)

it("lossOf finds every admitted unit again with AOF, always", async () => {
  const { admitted, lost, lostByOne } = await lossOf(setting("AOF, always"), TRAFFIC)
  expect({ lost, lostByOne }).toEqual({ lost: 0, lostByOne: 0 })
  expect(admitted).toBeGreaterThan(0)
})

// With a slow disk, Redis postpones writes of the AOF, and a replica lags. A few of the latest units may then be lost.
it.each(["AOF, everysec", "a replica, promoted"])(
  "lossOf finds earlier units again with %s",
  async (name) => {
    const { admitted, lost } = await lossOf(setting(name), TRAFFIC)
    expect(lost).toBeLessThan(admitted)
  },
)

it("measureAllLost returns twice the limit", async () => {
  expect(await measureAllLost(server, 20)).toBe(2)
})

it("measureEvicted finds clients with a second limit unless the policy is noeviction", async () => {
  expect(await measureEvicted(server, 2_000, "noeviction")).toBe(0)
  expect(await measureEvicted(server, 2_000, "allkeys-lru")).toBeGreaterThan(0)
})
