import { InvalidOptionError, memoryStore } from "@sluice/core"
import type { Options } from "express-rate-limit"
import { afterEach, describe, expect, it } from "vitest"
import { SluiceStore, type SluiceStoreOptions } from "./index.ts"

const opened: SluiceStore[] = []
afterEach(async () => {
  for (const store of opened.splice(0)) await store.shutdown()
})

function open(options?: SluiceStoreOptions): SluiceStore {
  const store = new SluiceStore(options)
  opened.push(store)
  return store
}

const client = { duplicate() {} } as never

describe("SluiceStore", () => {
  it.each<[string, object, string]>([
    [
      "of rate-limit-redis",
      { sendCommand() {} },
      'sendCommand: is not an option of SluiceStore; use "client" instead',
    ],
    [
      "of the limiter",
      { windowMs: 1 },
      "windowMs: is not an option of SluiceStore; leave it in rateLimit({ … })",
    ],
    ["that do not exist", { pre: "a" }, "pre: is not an option of SluiceStore"],
    ["in two places", { client, store: memoryStore() }, "store: is given besides client"],
    ["with an empty prefix", { prefix: "" }, "prefix: '' is not a valid prefix"],
    ["with braces in the prefix", { prefix: "{a}:" }, "prefix: '{a}:' is not a valid prefix"],
    ["with quotes in the prefix", { prefix: 'a"' }, "prefix: 'a\"' is not a valid prefix"],
    ["with a prefix that is not a string", { prefix: 7 }, "prefix: 7 is not a valid prefix"],
    ["with a fraction as the largest limit", { largestLimit: 1.5 }, "largestLimit: 1.5 is not a valid limit"],
    ["with a largest limit of 0", { largestLimit: 0 }, "largestLimit: 0 is not a valid limit"],
    ["that hold requests", { algorithm: "leaky-bucket" }, 'algorithm: "leaky-bucket" holds requests'],
    ["of an unknown algorithm", { algorithm: "guess" }, '"guess" is not'],
    ["that contradict the algorithm", { burst: 3 }, "burst"],
    ["with 0 instances", { instances: 0 }, "instances: 0"],
    ["with something that is not a store", { store: {} }, "store"],
    ["with something that is not a client", { client: {} }, "client"],
    ["that are a client themselves", client, "is not an options object"],
    ["that are a URL", "redis://:secret@localhost" as never, "is not an options object"],
    ["that are null", null as never, "is not an options object"],
  ])("throws immediately for options %s", (_what, options, message) => {
    expect(() => new SluiceStore(options as SluiceStoreOptions)).toThrow(InvalidOptionError)
    expect(() => new SluiceStore(options as SluiceStoreOptions)).toThrow(message)
  })

  it("reports all invalid options together", () => {
    const make = () => new SluiceStore({ sendCommand() {}, prefix: "" } as SluiceStoreOptions)
    expect(make).toThrow(/sendCommand.*prefix/s)
  })

  it("counts in memory by default", () => {
    expect(open()).toMatchObject({ prefix: "rl:", localKeys: true })
  })
})

describe("a prefix", () => {
  it("belongs to one limiter of a store until the store is shut down", async () => {
    const store = memoryStore()
    const first = open({ store })
    expect(open({ store, prefix: "login:" }).prefix).toBe("login:")
    expect(() => new SluiceStore({ store })).toThrow(
      'prefix: another SluiceStore already counts with the prefix "rl:" there; accepted: a different prefix for each ' +
        'limiter, such as "login:", or shutdown() of the other store first',
    )
    await first.shutdown()
    expect(open({ store }).prefix).toBe("rl:")
    // A second call does not free the prefix of the other store.
    await first.shutdown()
    expect(() => new SluiceStore({ store })).toThrow(InvalidOptionError)
  })

  it("may be the same for stores in memory, which count separately", async () => {
    const [first, second] = [open(), open()]
    for (const store of [first, second]) store.init({ limit: 5, windowMs: 1_000 } as Options)
    await first.increment("ann")
    expect((await second.increment("ann")).totalHits).toBe(1)
  })
})

it("a store that was not passed to rateLimit throws", async () => {
  const store = open()
  expect(() => store.limiter).toThrow("store: was used before it was passed to rateLimit()")
  await expect(store.increment("ann")).rejects.toThrow(InvalidOptionError)
})

it.each([
  [Number.NaN, "NaN ms"],
  [
    "1 minute",
    "windowMs: '1 minute' is not a window of express-rate-limit; accepted: a number of milliseconds",
  ],
  [Symbol("odd"), "windowMs: Symbol(odd) is not a window"],
  [5n, "windowMs: 5n is not a window"],
])("the invalid window %s is reported by init() and by each call", async (windowMs, text) => {
  const store = open()
  expect(() => store.init({ limit: 1, windowMs: windowMs as number } as Options)).toThrow(text)
  await expect(store.increment("ann")).rejects.toThrow(InvalidOptionError)
  await expect(store.increment("ann")).rejects.toThrow(text)
})
