import { afterEach, describe, expect, test, vi } from "vitest"
import { ClosedError, InvalidRuleError, RuleSourceError } from "../errors.ts"
import type { Rule } from "./rule.ts"
import { type Edition, LOAD_TIMEOUT_MS, type RuleBook, type RuleBookOptions, ruleBook } from "./rule-book.ts"
import type { LoadedRules, RuleSource } from "./source.ts"

/** A source whose loads are settled by hand, in any order. */
function manualSource() {
  const loads: {
    resolve(loaded: LoadedRules): void
    reject(error: unknown): void
    signal: AbortSignal | undefined
  }[] = []
  const listeners = new Set<() => void>()
  const calls: string[] = []
  const source: RuleSource = {
    load(service, { signal } = {}) {
      calls.push(`load ${service}`)
      return new Promise((resolve, reject) => loads.push({ resolve, reject, signal }))
    },
    watch(changed) {
      calls.push("watch")
      listeners.add(changed)
      return () => listeners.delete(changed)
    },
  }
  const change = (): void => {
    for (const changed of listeners) changed()
  }
  return { source, loads, listeners, calls, change }
}

/** Waits that end when the test says so: those before a retry, and those for a load, one each. */
function manualWait() {
  const waits: { ms: number; signal: AbortSignal; end(): void }[] = []
  const deadlines: typeof waits = []
  const wait = (ms: number, signal: AbortSignal) =>
    new Promise<void>((end, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason))
      const all = ms === LOAD_TIMEOUT_MS ? deadlines : waits
      all.push({ ms, signal, end })
    })
  return { waits, deadlines, wait }
}

/** Lets everything happen that needs no time. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

const loaded = (...limits: number[]): LoadedRules => ({
  rules: limits.map((limit): Rule => ({ name: `rule ${limit}`, limit, window: "1m" })),
  problems: [],
})
const limitsOf = (edition: Edition | undefined) => edition?.rules.map(({ limit }) => limit)
const down = (message = "down") => new RuleSourceError(message)

const books: RuleBook[] = []
afterEach(() => {
  for (const book of books.splice(0)) book.close()
})

function open(options: Partial<RuleBookOptions> = {}) {
  const manual = manualSource()
  const { waits, deadlines, wait } = manualWait()
  const editions: Edition[] = []
  const errors: Error[] = []
  const book = ruleBook({
    source: manual.source,
    service: "checkout",
    onLoaded: (edition) => editions.push(edition),
    onError: (error) => errors.push(error),
    wait,
    random: () => 0,
    ...options,
  })
  books.push(book)
  return { ...manual, waits, deadlines, editions, errors, book }
}

describe("the first load", () => {
  test("begins at once, after watching did, and for the book's service", () => {
    const { calls } = open()
    expect(calls).toEqual(["watch", "load checkout"])
  })

  test("makes the book ready, with its rules parsed", async () => {
    const { book, loads, editions } = open()
    expect(book.current).toBeUndefined()
    const ready = book.ready()
    loads[0]?.resolve({ ...loaded(5), version: 7 })
    await ready
    expect(book.current).toMatchObject({ rules: [{ name: "rule 5", windowMs: 60_000, cost: 1 }], version: 7 })
    expect(editions).toEqual([book.current])
    await book.ready()
  })

  test("of no rules at all makes it ready too", async () => {
    const { book, loads } = open()
    loads[0]?.resolve(loaded())
    await book.ready()
    expect(book.current).toEqual({ rules: [], problems: [] })
  })

  test("of good and bad rules keeps the good and tells the bad, those of the source first", async () => {
    const { book, loads } = open()
    const aside = { path: "rules[9]", message: "is wrong" }
    loads[0]?.resolve({
      rules: [
        { limit: 5, window: "1m" },
        { limit: 0, window: "1m", name: "x" },
      ],
      problems: [aside],
    })
    await book.ready()
    expect(limitsOf(book.current)).toEqual([5])
    expect(book.current?.problems).toMatchObject([aside, { path: "rules[1].limit" }])
  })

  test("of nothing but bad rules is a failure", async () => {
    const { book, loads, errors } = open()
    const ready = book.ready()
    loads[0]?.resolve({ rules: [], problems: [{ path: "rules[0]", message: "is wrong" }] })
    await expect(ready).rejects.toThrow(InvalidRuleError)
    expect(errors).toMatchObject([{ code: "SLUICE_INVALID_RULE", problems: [{ path: "rules[0]" }] }])
    expect(book.current).toBeUndefined()
  })

  test("of something that is no list of rules is a failure", async () => {
    const { book, loads } = open()
    const ready = book.ready()
    loads[0]?.resolve({ rules: "all" as unknown as Rule[], problems: [] })
    await expect(ready).rejects.toThrow('"all" is not a list of rules')
  })
})

describe("a failed load", () => {
  test("is told to those who wait, and tried again until it succeeds", async () => {
    const { book, loads, waits, errors } = open()
    const ready = book.ready()
    loads[0]?.reject(down())
    await expect(ready).rejects.toThrow("down")
    const again = book.ready()
    expect(waits.map(({ ms }) => ms)).toEqual([500])
    waits[0]?.end()
    await settled()
    loads[1]?.resolve(loaded(5))
    await again
    expect(limitsOf(book.current)).toEqual([5])
    expect(errors).toHaveLength(1)
  })

  test("waits twice as long each time, up to half a minute, less up to a half at random", async () => {
    let random = 0
    const { loads, waits } = open({ random: () => random })
    for (let index = 0; index < 9; index++) {
      random = index % 2 === 0 ? 0 : 0.5
      loads[index]?.reject(down())
      await settled()
      waits[index]?.end()
      await settled()
    }
    expect(waits.map(({ ms }) => ms)).toEqual([500, 750, 2_000, 3_000, 8_000, 12_000, 30_000, 22_500, 30_000])
  })

  test("begins anew with short waits after a success", async () => {
    const { loads, waits, change } = open()
    loads[0]?.reject(down())
    await settled()
    waits[0]?.end()
    await settled()
    loads[1]?.resolve(loaded(5))
    await settled()
    change()
    loads[2]?.reject(down())
    await settled()
    expect(waits.map(({ ms }) => ms)).toEqual([500, 500])
  })

  test("tells an error once while it repeats itself, and again after a success", async () => {
    const { loads, change, errors } = open()
    const outcomes = [down("a"), down("a"), down("b"), loaded(5), down("b")]
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome instanceof Error) loads[index]?.reject(outcome)
      else loads[index]?.resolve(outcome)
      await settled()
      change()
    }
    expect(errors.map(({ message }) => message)).toEqual(["a", "b", "b"])
  })

  test("keeps the last good rules", async () => {
    const { book, loads, change, waits } = open()
    loads[0]?.resolve(loaded(5))
    await book.ready()
    change()
    loads[1]?.reject(down())
    await settled()
    expect(limitsOf(book.current)).toEqual([5])
    waits[0]?.end()
    await settled()
    loads[2]?.resolve({ rules: [], problems: [{ path: "rules[0]", message: "is wrong" }] })
    await settled()
    expect(limitsOf(book.current)).toEqual([5])
    await book.ready()
  })

  test.each([
    [new TypeError("no such table"), 'The rules of service "checkout" cannot be loaded: no such table'],
    ["gone", 'The rules of service "checkout" cannot be loaded: "gone"'],
  ])("with an error of others is told as one of the source: %s", async (cause, message) => {
    const { book, loads } = open()
    const ready = book.ready()
    loads[0]?.reject(cause)
    await expect(ready).rejects.toThrow(
      expect.objectContaining({ code: "SLUICE_RULE_SOURCE", message, cause }),
    )
  })

  test("is what a source that throws, or a listener that refuses the rules, makes of it", async () => {
    const thrower = {
      load: () => {
        throw new Error("at once")
      },
    }
    await expect(open({ source: thrower }).book.ready()).rejects.toThrow("at once")
    const refused = open({
      onLoaded: () => {
        throw new Error("no room")
      },
    })
    const ready = refused.book.ready()
    refused.loads[0]?.resolve(loaded(5))
    await expect(ready).rejects.toThrow("no room")
    expect(refused.book.current).toBeUndefined()
  })

  test("is not tried again when there is no way to wait", async () => {
    const { loads } = open({ wait: () => Promise.reject(new Error("no timers")) })
    loads[0]?.reject(down())
    await settled()
    expect(loads).toHaveLength(1)
  })
})

describe("a load that hangs", () => {
  test("is given up after ten seconds, its signal aborted, and tried again like any failed one", async () => {
    const { book, loads, waits, deadlines, errors } = open()
    const ready = book.ready()
    expect(deadlines.map(({ ms }) => ms)).toEqual([10_000])
    expect(loads[0]?.signal?.aborted).toBe(false)
    deadlines[0]?.end()
    const message = 'The rules of service "checkout" cannot be loaded: no answer within 10 seconds'
    await expect(ready).rejects.toThrow(expect.objectContaining({ code: "SLUICE_RULE_SOURCE", message }))
    expect(errors).toMatchObject([{ message }])
    expect(loads[0]?.signal?.reason).toBe(errors[0])
    expect(waits.map(({ ms }) => ms)).toEqual([500])
    waits[0]?.end()
    await settled()
    expect(deadlines).toHaveLength(2)
    loads[1]?.resolve(loaded(5))
    await book.ready()
    expect(limitsOf(book.current)).toEqual([5])
  })

  test("leaves the last good rules, and its late answer changes nothing", async () => {
    const { book, loads, deadlines, change, errors, editions } = open()
    loads[0]?.resolve(loaded(5))
    await book.ready()
    change()
    deadlines[1]?.end()
    await settled()
    expect(errors).toHaveLength(1)
    loads[1]?.resolve(loaded(6))
    await settled()
    expect(limitsOf(book.current)).toEqual([5])
    expect(editions).toHaveLength(1)
  })

  test("is waited for no longer once it has answered, well or badly", async () => {
    const { loads, deadlines, change } = open()
    loads[0]?.resolve(loaded(5))
    await settled()
    change()
    expect(deadlines.map(({ signal }) => signal.aborted)).toEqual([true, false])
    loads[1]?.reject(down())
    await settled()
    expect(deadlines.map(({ signal }) => signal.aborted)).toEqual([true, true])
    expect(loads.map(({ signal }) => signal?.aborted)).toEqual([false, false])
  })

  test("is waited for as long as it takes when there is no way to wait", async () => {
    const { book, loads } = open({ wait: () => Promise.reject(new Error("no timers")) })
    await settled()
    loads[0]?.resolve(loaded(5))
    await book.ready()
    expect(limitsOf(book.current)).toEqual([5])
  })

  test("ends with the book, and so does the wait for it", async () => {
    const { book, loads, deadlines } = open()
    book.close()
    expect([loads[0]?.signal?.aborted, deadlines[0]?.signal.aborted]).toEqual([true, true])
    await settled()
  })
})

describe("a change of the source", () => {
  test("swaps the rules as a whole", async () => {
    const { book, loads, change, editions } = open()
    loads[0]?.resolve(loaded(5, 6))
    await book.ready()
    const before = book.current
    change()
    expect(book.current).toBe(before)
    loads[1]?.resolve(loaded(7))
    await settled()
    expect(limitsOf(before)).toEqual([5, 6])
    expect(limitsOf(book.current)).toEqual([7])
    expect(editions.map(limitsOf)).toEqual([[5, 6], [7]])
  })

  test("may take all rules away", async () => {
    const { book, loads, change } = open()
    loads[0]?.resolve(loaded(5))
    await book.ready()
    change()
    loads[1]?.resolve(loaded())
    await settled()
    expect(limitsOf(book.current)).toEqual([])
  })

  test("never lets an older answer replace a newer one, nor an older failure be told after it", async () => {
    const { book, loads, change, editions, errors } = open()
    change()
    change()
    loads[1]?.resolve(loaded(2))
    await settled()
    loads[0]?.resolve(loaded(1))
    await settled()
    expect(limitsOf(book.current)).toEqual([2])
    loads[2]?.resolve(loaded(3))
    await settled()
    change()
    change()
    loads[4]?.resolve(loaded(5))
    await settled()
    loads[3]?.reject(down())
    await settled()
    expect(editions.map(limitsOf)).toEqual([[2], [3], [5]])
    expect(errors).toEqual([])
  })

  test("makes a retry that is still waiting unnecessary", async () => {
    const { loads, waits, change } = open()
    loads[0]?.reject(down())
    await settled()
    change()
    loads[1]?.resolve(loaded(5))
    await settled()
    waits[0]?.end()
    await settled()
    expect(loads).toHaveLength(2)
  })
})

describe("waiting to be ready", () => {
  test("ends when the signal is aborted, for that caller alone", async () => {
    const { book, loads } = open()
    const controller = new AbortController()
    const [given, kept] = [
      book.ready({ signal: controller.signal }),
      book.ready({ signal: new AbortController().signal }),
    ]
    controller.abort(new Error("enough"))
    await expect(given).rejects.toThrow("enough")
    loads[0]?.resolve(loaded(5))
    await kept
    await expect(book.ready({ signal: controller.signal })).rejects.toThrow("enough")
  })

  test("leaves no listener on the signal", async () => {
    const { book, loads } = open()
    const { signal } = new AbortController()
    const remove = vi.spyOn(signal, "removeEventListener")
    const ready = book.ready({ signal })
    loads[0]?.resolve(loaded(5))
    await ready
    expect(remove).toHaveBeenCalledWith("abort", expect.any(Function))
  })
})

describe("closing", () => {
  test("stops watching, aborts the load under way, and refuses who waits", async () => {
    const { book, loads, listeners, editions, change } = open()
    const ready = book.ready()
    const [changed] = listeners
    book.close()
    await expect(ready).rejects.toThrow(ClosedError)
    await expect(book.ready()).rejects.toThrow(ClosedError)
    expect(loads[0]?.signal?.aborted).toBe(true)
    expect(listeners.size).toBe(0)
    loads[0]?.resolve(loaded(5))
    changed?.()
    change()
    await settled()
    expect(loads).toHaveLength(1)
    expect(editions).toEqual([])
    book.close()
  })

  test("ends the wait for a retry", async () => {
    const { book, loads, waits } = open()
    loads[0]?.reject(down())
    await settled()
    book.close()
    await settled()
    expect(waits).toHaveLength(1)
    expect(loads).toHaveLength(1)
  })
})

test("without a wait of its own it waits on a timer that holds no process and ends with the book", async () => {
  const held = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
  const before = held()
  let loads = 0
  const load = () => {
    loads += 1
    return Promise.reject(down())
  }
  const book = ruleBook({ source: { load }, service: "a" })
  books.push(book)
  await expect(book.ready()).rejects.toThrow("down")
  await settled()
  expect(held()).toBe(before)
  expect(loads).toBe(1)
  book.close()
  await settled()
  expect(loads).toBe(1)
})
