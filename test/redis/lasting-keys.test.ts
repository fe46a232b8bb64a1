import { Redis } from "ioredis"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { check, EACH, MINUTE, SLIDING } from "../../packages/contracts/src/store/asking.ts"
import type { CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { type ManualClock, manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { Check } from "../../packages/core/src/stores/store.ts"
import { takeEach } from "../../packages/core/src/stores/testing/take-each.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import type { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { commandLines } from "../docs/shell/words.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { everyNth } from "../test-length.ts"
import { compactStore } from "./compact-store.ts"
import { keysWithoutTtl, timeOf } from "./counted.ts"

/** The permissions that a user needs according to the guide. */
const [permissions] = blocksTestedBy("test/redis/guide.test.ts", "docs/production/redis.md", 1)
const [, ...ALLOWED] = commandLines(permissions?.text ?? "")[0]?.words.slice(3) ?? []
/**
 * The commands that the scripts use to read and write. The other commands of the guide are omitted, because without
 * them a user cannot run a script or connect.
 */
const COMMANDS = ALLOWED.filter((rule) => /^\+(?!eval|time|info|ping)/.test(rule)).map((rule) =>
  rule.slice(1),
)

const LARGE = 2 ** 21
const COUNTS_REJECTED = EACH.filter(({ extra }) => extra === undefined)
const POLICIES: readonly Policy[] = [
  ...EACH,
  ...EACH.filter(({ name }) => name === "strict" || name === "sliding").map((policy) => ({
    ...policy,
    name: `${policy.name}, large`,
    limit: LARGE,
  })),
  ...EACH.filter(({ name }) => name === "strict").map((policy) => ({
    ...policy,
    name: "strict, extra",
    extra: 5,
  })),
  ...COUNTS_REJECTED.map((policy) => ({ ...policy, name: `${policy.name}, rejected`, countRejected: true })),
]
const FULL: Policy = { ...SLIDING, counter: "full", limit: 1 }

const { server } = await redisForTests()
let all: Redis
let some: Redis
beforeAll(async () => {
  await server.command("ACL", "SETUSER", "some", ...ALLOWED)
  all = new Redis(server.port, server.host)
  some = new Redis({ port: server.port, host: server.host, username: "some", password: "secret" })
})
afterAll(async () => {
  some?.disconnect()
  all?.disconnect()
})

beforeEach(() => all.flushall())

/**
 * Creates a store on the server's clock, or on a clock that can advance. In both cases, the store uses the layout for
 * the server's clock.
 */
function open(client: Redis, clock?: ManualClock): RedisStore {
  return compactStore(client, clock)
}

/**
 * Calls all operations of a store, with a full user and with the restricted user. Returns how many calls of the
 * restricted user failed. Each call of the restricted user uses a new store, which has not failed yet. Expects that
 * every key has a TTL afterwards.
 */
async function useAll(policy: Policy, clock?: ManualClock): Promise<number> {
  let failed = 0
  const attempt = async (work: (store: RedisStore) => unknown): Promise<void> => {
    const store = open(some, clock)
    try {
      await work(store)
    } catch {
      failed++
    }
    store.close()
  }
  const take = (...requests: readonly (readonly Check[])[]) => attempt((store) => takeEach(store, requests))
  const one = (partition: string, cost = 1): Check => check(policy, cost, { partition })
  const mayAll = open(all, clock)
  try {
    await mayAll.take([check(FULL)])
    const first = await mayAll.take([one("there")])
    for (const cost of [2, 7]) await takeEach(mayAll, [[one("there", cost)], [one("full", cost + 1)]])
    await take([one("a")])
    await take([one("b")], [one("c", 2)], [one("c", 9)])
    await take([one("d"), check(SLIDING, 1, { partition: "d" })])
    await take([check(SLIDING, 1, { partition: "e" }), one("e")])
    // The last check refuses, so the units of the other checks are refunded.
    await take([one("f"), check(SLIDING, 1, { partition: "f" }), check(FULL)])
    await take([one("g"), one("full")])
    await take([one("g", 2), one("g", 9)])
    clock?.advance(MINUTE / 12)
    await take([one("there", 9)])
    await take([one("h"), one("there")])
    const refund = { policy, partition: "there", after: first?.checks[0]?.state as CounterState }
    for (const units of [1, -1, 20]) await attempt((store) => store.refund([{ ...refund, units }]))
    for (const [partition, units] of [
      ["i", -1],
      ["i", 1],
      ["nobody", 1],
    ] as const) {
      await attempt((store) => store.refund([{ ...refund, partition, units }]))
    }
    clock?.advance(MINUTE)
    await take([one("full")])
    await take([one("j"), one("there")])
    clock?.advance(-2 * MINUTE)
    await attempt((store) => store.read([one("full"), one("there")]))
    await take([one("k")], [one("there")], [one("full"), one("k")])
    await attempt((store) => store.reset([one("there")]))
    // Another sub-window begins after sub-windows that contain units.
    for (let part = 0; part < 2; part++) {
      await mayAll.take([one("next")])
      clock?.advance(MINUTE / 12)
    }
    await take([one("next")])
    // Take units from a key that contains another program's hash, which has a TTL.
    const name = keyNamer("")(one("other"))
    await all.multi().del(name).hset(name, "owner", "somebody").pexpire(name, MINUTE).exec()
    await take([one("other")])
    expect(await keysWithoutTtl(server)).toEqual([])
  } finally {
    mayAll.close()
  }
  return failed
}

function isStrict({ algorithm }: Policy): boolean {
  return algorithm === "sliding-window-strict"
}

/** True if Redis has denied this command to a user. */
async function wasDenied(command: string): Promise<boolean> {
  const entries = (await server.command("ACL", "LOG")) as readonly (readonly unknown[])[]
  return entries.some((entry) => entry[entry.indexOf("object") + 1] === command)
}

describe("a Redis user", () => {
  it("with permission for all commands can count", async () => {
    for (const policy of POLICIES) {
      await all.flushall()
      // The store cannot count in another program's hash.
      expect(await useAll(policy, manualClock())).toBe(1)
    }
  })

  it.each(COMMANDS.map((command, nth) => [command, nth] as const))(
    "without permission for %s never leaves a key without a TTL",
    async (command, nth) => {
      await server.command("ACL", "SETUSER", "some", `-${command}`)
      await server.command("ACL", "LOG", "RESET")
      try {
        // Only strict windows use hashes.
        const isOfHashes = command.startsWith("h")
        const counting = isOfHashes ? POLICIES.filter(isStrict) : everyNth(2, POLICIES, nth)
        for (const policy of counting) {
          for (const clock of [undefined, manualClock()]) {
            await all.flushall()
            await useAll(policy, clock)
          }
        }
        // The script uses the TTL to distinguish a counter of the previous window from one of a later window. Another
        // counter begins in the same call.
        const minute = Math.floor((await timeOf(server)) / MINUTE)
        const before = String((((minute - 1) % 2_047) + 1) * 2 ** 42 + 1)
        const there = check(SLIDING, 1, { partition: "there" })
        await all.set(keyNamer("")(there), before, "PX", MINUTE)
        const store = open(some)
        await Promise.allSettled([store.take([check(SLIDING), there])])
        store.close()
        expect(await keysWithoutTtl(server)).toEqual([])
      } finally {
        await server.command("ACL", "SETUSER", "some", `+${command}`)
      }
      expect(await wasDenied(command)).toBe(true)
    },
  )
})
