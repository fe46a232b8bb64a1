import { AsyncLocalStorage } from "node:async_hooks"
import { spawnSync } from "node:child_process"
import { getEventListeners } from "node:events"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
import { afterEach, describe, expect, test } from "vitest"
import { ClosedError, RuleSourceError } from "../packages/core/src/ground/errors.ts"
import type { Edition } from "../packages/core/src/rules/live-rules.ts"
import type { Rule } from "../packages/core/src/rules/rule.ts"
import { OpenBook } from "../packages/rules/src/book/open-book.ts"
import { parseBookOptions, type RuleBookOptions } from "../packages/rules/src/book/options.ts"
import { LOAD_TIMEOUT_MS } from "../packages/rules/src/book/timing.ts"
import type { LoadedRules } from "../packages/rules/src/source.ts"
import { handSettledSource, settled } from "./rule-book/hand-made-source.ts"

/** The default for sources that are not polled. */
const STALE_AFTER_MS = 90_000

/** Returns waits that the test ends by hand: the waits for a retry, for a load timeout, and for stale rules. */
function manualWait() {
  const waits: { ms: number; signal: AbortSignal; end(): void }[] = []
  const deadlines: typeof waits = []
  const stales: typeof waits = []
  const wait = (ms: number, signal: AbortSignal = new AbortController().signal) =>
    new Promise<void>((end, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason))
      // Ignore the wait after which persistent problems are logged again, because other tests cover it.
      const others = ms === 3_600_000 ? [] : waits
      const all = ms === LOAD_TIMEOUT_MS ? deadlines : ms === STALE_AFTER_MS ? stales : others
      all.push({ ms, signal, end })
    })
  return { waits, deadlines, stales, wait }
}

const loaded = (...limits: number[]): LoadedRules => ({
  rules: limits.map((limit): Rule => ({ name: `rule ${limit}`, field: "service", limit, window: "1m" })),
  problems: [],
})
const limitsOf = (edition: Edition | undefined) => edition?.rules.map(({ limit }) => limit)
const down = (message = "down") => new RuleSourceError(message)

const books: OpenBook[] = []
afterEach(() => {
  for (const book of books.splice(0)) book.close()
})

/** Creates a book that loads the service "checkout". */
function open(options: Partial<RuleBookOptions> & { readonly wait?: () => Promise<void> } = {}) {
  const manual = handSettledSource()
  const manualWaits = manualWait()
  const { wait = manualWaits.wait, ...others } = options
  const editions: Edition[] = []
  const errors: Error[] = []
  const said: string[] = []
  const say = ({ code }: { readonly code: string }, message: string) => said.push(`${code} ${message}`)
  const book = new OpenBook(
    parseBookOptions({
      source: manual.source,
      clock: { now: () => 0, wait },
      random: () => 0,
      logger: { warn: say, error: say },
      ...others,
    }),
  )
  books.push(book)
  const page = book.enter("checkout", {
    onEdition: (edition) => editions.push(edition),
    onError: (error) => errors.push(error),
    onStale() {},
  })
  return { ...manual, ...manualWaits, editions, errors, said, book, page }
}

describe("the first load", () => {
  test("starts immediately for the book's service, after watching has started", () => {
    const { calls } = open()
    expect(calls).toEqual(["watch", "load checkout"])
  })

  test("makes the book ready with parsed rules", async () => {
    const { book, page, loads, editions } = open()
    expect(page.edition).toBeUndefined()
    const ready = book.ready()
    loads[0]?.resolve({ ...loaded(5), version: 7 })
    await ready
    expect(page.edition).toMatchObject({ rules: [{ name: "rule 5", windowMs: 60_000, cost: 1 }], version: 7 })
    expect(editions).toEqual([page.edition])
    await book.ready()
  })

  test("keeps the valid rules, and lists invalid rules below the problems that the source reported", async () => {
    const { book, page, loads } = open()
    const aside = { path: "rules[9]", message: "is wrong" }
    loads[0]?.resolve({
      rules: [
        { field: "service", limit: 5, window: "1m" },
        { field: "service", limit: 0, window: "1m", name: "x" },
      ],
      problems: [aside],
    })
    await book.ready()
    expect(limitsOf(page.edition)).toEqual([5])
    expect(page.edition?.problems).toMatchObject([aside, { path: "rules[1].limit" }])
  })
})

describe("a failed load", () => {
  test("is reported to waiting callers and retried until it succeeds", async () => {
    const { book, page, loads, waits, errors } = open()
    const ready = book.ready()
    loads[0]?.reject(down())
    await expect(ready).rejects.toThrow("down")
    const again = book.ready()
    expect(waits.map(({ ms }) => ms)).toEqual([500])
    waits[0]?.end()
    await settled()
    loads[1]?.resolve(loaded(5))
    await again
    expect(limitsOf(page.edition)).toEqual([5])
    expect(errors).toHaveLength(1)
  })

  test("doubles the retry delay each time, up to 30 s, minus up to half of it at random", async () => {
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

  test("is retried with short delays again after a success", async () => {
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

  test("is reported once for the same error, and again after a success", async () => {
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

  test.each([
    [new TypeError("no such table"), 'The rules of service "checkout" cannot be loaded: no such table'],
    ["gone", 'The rules of service "checkout" cannot be loaded: "gone"'],
    [new ClosedError("client closed"), 'The rules of service "checkout" cannot be loaded: client closed'],
  ])("whose error is not a RuleSourceError is reported as a RuleSourceError: %s", async (cause, message) => {
    const { book, loads } = open()
    const ready = book.ready()
    loads[0]?.reject(cause)
    await expect(ready).rejects.toThrow(
      expect.objectContaining({ code: "SLUICE_RULE_SOURCE", message, cause }),
    )
  })

  test("is also caused by a source that throws synchronously", async () => {
    const thrower = {
      load: () => {
        throw new Error("immediately")
      },
    }
    await expect(open({ source: thrower }).book.ready()).rejects.toThrow("immediately")
  })

  test("is not retried if timers do not work", async () => {
    const { loads } = open({ wait: () => Promise.reject(new Error("no timers")) })
    loads[0]?.reject(down())
    await settled()
    expect(loads).toHaveLength(1)
  })
})

describe("a load that hangs", () => {
  test("is aborted after ten seconds and retried like any failed load", async () => {
    const { book, page, loads, waits, deadlines, errors } = open()
    const ready = book.ready()
    expect(deadlines.map(({ ms }) => ms)).toEqual([10_000])
    expect(loads[0]?.signal?.aborted).toBe(false)
    deadlines[0]?.end()
    const message = 'The rules of service "checkout" cannot be loaded: no response within 10 seconds'
    await expect(ready).rejects.toThrow(expect.objectContaining({ code: "SLUICE_RULE_SOURCE", message }))
    expect(errors).toMatchObject([{ message }])
    expect(loads[0]?.signal?.reason).toBe(errors[0])
    expect(waits.map(({ ms }) => ms)).toEqual([500])
    waits[0]?.end()
    await settled()
    expect(deadlines).toHaveLength(2)
    loads[1]?.resolve(loaded(5))
    await book.ready()
    expect(limitsOf(page.edition)).toEqual([5])
  })

  test("leaves the previous rules in force, and its late result is ignored", async () => {
    const { book, page, loads, deadlines, change, errors, editions } = open()
    loads[0]?.resolve(loaded(5))
    await book.ready()
    change()
    deadlines[1]?.end()
    await settled()
    expect(errors).toHaveLength(1)
    loads[1]?.resolve(loaded(6))
    await settled()
    expect(limitsOf(page.edition)).toEqual([5])
    expect(editions).toHaveLength(1)
  })
})

describe("a change of the source", () => {
  test("never lets an older load replace a newer load's rules, or report a failure after them", async () => {
    const { page, loads, change, editions, errors } = open()
    change()
    loads[1]?.resolve(loaded(2))
    await settled()
    expect(loads[0]?.signal?.aborted).toBe(true)
    loads[0]?.resolve(loaded(1))
    await settled()
    expect(limitsOf(page.edition)).toEqual([2])
    change()
    change()
    loads[3]?.resolve(loaded(3))
    await settled()
    loads[2]?.reject(down())
    await settled()
    expect(editions.map(limitsOf)).toEqual([[2], [3]])
    expect(errors).toEqual([])
  })

  test("applies the older load if it ends first, and then the newer load", async () => {
    const { loads, change, editions } = open()
    change()
    loads[0]?.resolve(loaded(1))
    await settled()
    loads[1]?.resolve(loaded(2))
    await settled()
    expect(editions.map(limitsOf)).toEqual([[1], [2]])
  })

  test("starts a second load during a pending load, and a third load when one of these ends", async () => {
    const { loads, change, editions } = open()
    for (let times = 0; times < 5; times++) change()
    await settled()
    expect(loads).toHaveLength(2)
    loads[0]?.resolve(loaded(1))
    await settled()
    expect(loads).toHaveLength(3)
    loads[1]?.resolve(loaded(2))
    loads[2]?.resolve(loaded(3))
    await settled()
    expect(editions.map(limitsOf)).toEqual([[1], [2], [3]])
    expect(loads).toHaveLength(3)
  })

  test("leaves retries to the newer of two loads, regardless of the older load's result", async () => {
    const { loads, change, waits } = open()
    change()
    loads[0]?.reject(down())
    await settled()
    expect(waits).toHaveLength(0)
    loads[1]?.reject(down("still"))
    await settled()
    expect(waits).toHaveLength(1)
  })

  test("cancels a pending retry", async () => {
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

describe("a refresh", () => {
  test("loads the latest rules even if it must wait for other loads, while changes and retries may load older rules", async () => {
    const { book, loads, change, waits } = open()
    const fresh = () => loads.map((each) => each.fresh)
    change()
    change()
    expect(fresh()).toEqual([false, false])
    const refreshed = book.refresh({ service: "checkout" })
    change()
    loads[0]?.resolve(loaded(1))
    await settled()
    expect(fresh()).toEqual([false, false, true])
    loads[2]?.reject(down())
    await expect(refreshed).rejects.toThrow("down")
    loads[1]?.resolve(loaded(1))
    await settled()
    waits[0]?.end()
    await settled()
    expect(fresh()).toEqual([false, false, true, false])
  })
})

describe("ready()", () => {
  test("rejects for a caller whose signal aborts, and still waits for other callers", async () => {
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

  test("adds only one listener to a signal that is passed to many calls", async () => {
    const { book, loads } = open()
    const { signal } = new AbortController()
    const ready = Array.from({ length: 20 }, () => book.ready({ signal }))
    loads[0]?.resolve(loaded(5))
    await Promise.all(ready)
    expect(getEventListeners(signal, "abort")).toHaveLength(1)
  })
})

describe("closing a rule book", () => {
  test("stops watching, aborts the pending load and rejects waiting callers", async () => {
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

  test("ends the wait for a retry, and no longer reports stale rules", async () => {
    const { book, loads, waits, stales, said } = open()
    loads[0]?.reject(down())
    await settled()
    book.close()
    for (const { end } of stales) end()
    await settled()
    expect([waits.length, loads.length, stales.length, said.length]).toEqual([1, 1, 1, 1])
    expect(stales[0]?.signal.aborted).toBe(true)
  })
})

/** Runs a module in its own process until nothing keeps it alive. */
function runAlone(script: string) {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href
  return spawnSync(process.execPath, ["--import", tsx, "--input-type=module", "-e", script], {
    encoding: "utf8",
    timeout: 100_000,
  })
}
const BOOK = JSON.stringify(new URL("../packages/rules/src/book/open-book.ts", import.meta.url).href)
const LIVE = JSON.stringify(new URL("../packages/rules/src/book/live-source.ts", import.meta.url).href)
const LIMITER = JSON.stringify(
  new URL("../packages/core/src/limiter/create-limiter.ts", import.meta.url).href,
)

test("a caller that waits for rules keeps the process alive until the rules are loaded, and no longer", () => {
  const child = runAlone(`
    import { setTimeout as delay } from "node:timers/promises"
    import { createRuleBook } from ${BOOK}
    import { liveRules } from ${LIVE}
    import { createLimiter } from ${LIMITER}
    const logger = { warn() {}, error() {} }
    const sourceOf = () => {
      let failures = 1
      const load = async () => {
        await delay(50, undefined, { ref: false })
        if (failures-- > 0) throw new Error("down")
        return { rules: [{ limit: 5, window: "1m" }], problems: [] }
      }
      return { load, pollMs: 100_000 }
    }
    const limiter = createLimiter({ rules: liveRules(sourceOf()), onRulesMissing: "allow", logger })
    await limiter.ready({ retry: true })
    console.log("limiter ready")
    await limiter.refresh()
    console.log("limiter refreshed")
    const book = createRuleBook({ source: sourceOf(), logger })
    const other = createLimiter({ rules: book, onRulesMissing: "allow", service: "checkout", logger })
    await book.ready({ retry: true })
    console.log("book ready")
    await book.refresh()
    console.log("book refreshed")
    console.log("found", (await book.find("search")).rules.length)`)
  const stdout = "limiter ready\nlimiter refreshed\nbook ready\nbook refreshed\nfound 1\n"
  expect(child).toMatchObject({ stderr: "", stdout, status: 0, signal: null })
})

test("a rule book without its own clock uses timers that do not keep the process alive", () => {
  const child = runAlone(`
    import { createRuleBook } from ${BOOK}
    const source = { load: async () => { throw new Error("down") }, async *loadAll() {}, pollMs: 1000 }
    const logger = { warn() {}, error() {} }
    await createRuleBook({ source, services: "all", logger }).ready()
    const failing = { ...source, loadAll: () => { throw new Error("down") } }
    await createRuleBook({ source: failing, services: "all", logger }).ready().catch(({ message }) => console.log(message))`)
  const stdout = "The rules of all services cannot be loaded: down\n"
  expect(child).toMatchObject({ stdout, status: 0, signal: null })
})

test("a load of rules that a request causes runs outside the request's async context", async () => {
  const storage = new AsyncLocalStorage<string>()
  const { loads, book, source } = open()
  const seen: (string | undefined)[] = []
  const load = source.load.bind(source)
  source.load = (service, options) => {
    seen.push(storage.getStore())
    return load(service, options)
  }
  loads[0]?.resolve(loaded(5))
  await settled()
  const refreshed = storage.run("a request", () => book.refresh())
  storage.run("a request", () => book.rulesOf("another"))
  await settled()
  for (const each of loads) each.resolve(loaded(5))
  await refreshed
  expect(seen).toEqual([undefined, undefined])
})
