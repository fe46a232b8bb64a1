import { setTimeout as delay } from "node:timers/promises"
import { createLimiter, RuleSourceError } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import {
  type FoundRules,
  formatRuleDocument,
  type LoadedNow,
  type LoadOptions,
  liveRules,
  parseRuleDocument,
  type RuleSource,
} from "@sluice/rules"
import { expect } from "expect"
import { type Behaviour, Contract, type Deviation } from "./behaviour.ts"

/** Rules of a service in the stored shape, as `parseRuleDocument` reads it. */
export interface StoredRules {
  /** The service to which the rules belong. */
  readonly service_id: string
  /** Version of the document. */
  readonly version?: number
  /** The rules as they are stored. Some rules may be invalid. */
  readonly rules: readonly Readonly<Record<string, unknown>>[]
}

/** A source, and operations on its storage for tests. */
export interface OpenedSource {
  /** The source. */
  readonly source: RuleSource
  /** Replaces all stored documents. */
  write(documents: readonly StoredRules[]): Promise<void>
  /** Makes the rules unreadable until the next write. */
  breakDown(): Promise<void>
  /** Removes everything that was created for the test, after the source was closed. */
  dispose(): Promise<void>
}

/** A rule source to be tested against the contract. */
export interface RuleSourceUnderTest {
  /** Creates a source that contains these rules. */
  create(documents: readonly StoredRules[]): Promise<OpenedSource>
  /** Known deviations from the contract. Default: none. */
  readonly deviations?: readonly Deviation[]
}

const rule = (limit: number, more: Readonly<Record<string, unknown>> = {}) => ({
  name: "rule",
  rate: { requests_per_unit: limit, unit: "minute" },
  ...more,
})
const QUIET = { warn() {}, error() {} }
const stored = (limit: number): StoredRules[] => [
  { service_id: "checkout", version: limit, rules: [rule(limit)] },
]

/**
 * Returns the behaviors of every rule source, {@link RuleSource} in `@sluice/core`. A source loads and lists rules,
 * reports changes and returns invalid rules as problems. The source rejects while its rules cannot be read, and can
 * provide the rules of a limiter.
 * @throws Error if a deviation names an unknown behavior
 */
export function ruleSourceContract({ create, deviations }: RuleSourceUnderTest): readonly Behaviour[] {
  const contract = new Contract(deviations)

  function behaves(
    behaviour: string,
    documents: readonly StoredRules[],
    show: (opened: OpenedSource) => Promise<void>,
  ): void {
    contract.add(behaviour, async () => {
      const opened = await create(documents)
      try {
        await show(opened)
      } finally {
        await opened.source.close?.()
        await opened.dispose()
      }
    })
  }

  /** Returns all services that the source lists, as one array. */
  const listed = async (source: RuleSource, options?: LoadOptions): Promise<FoundRules[]> => {
    const found: FoundRules[] = []
    if (source.loadAll === undefined) throw new Error("The source does not have loadAll().")
    for await (const page of source.loadAll(options)) found.push(...page)
    return found
  }

  /** Loads the rules of "checkout" synchronously. */
  const loadedNow = (source: RuleSource): LoadedNow => {
    if (source.loadSync === undefined) throw new Error("The source does not have loadSync().")
    return source.loadSync("checkout")
  }

  /** Watches the source. `heard` resolves when the source reports a change. */
  const changeOf = (source: RuleSource): { readonly heard: Promise<void>; readonly stop: () => void } => {
    let stop = () => {}
    const heard = new Promise<void>((resolve) => {
      stop = source.watch?.(resolve) ?? stop
    })
    return { heard, stop }
  }

  behaves(
    "loads the rules in their stored order",
    [
      {
        service_id: "checkout",
        rules: [rule(5), rule(9, { name: "second", field: "ip" }), rule(1, { name: "a-third" })],
      },
    ],
    async ({ source }) => {
      const { rules, problems } = await source.load("checkout")
      expect(rules.map(({ name, limit, field }) => [name, limit, field ?? "service"])).toEqual([
        ["rule", 5, "service"],
        ["second", 9, "ip"],
        ["a-third", 1, "service"],
      ])
      expect(problems).toEqual([])
    },
  )

  behaves(
    "returns rules that are also valid in code, with every member",
    [
      {
        service_id: "checkout",
        rules: [
          rule(5, {
            field: ["ip", "header:x-key"],
            algorithm: "fixed-window",
            align: "first-hit",
            notify: [80, 100],
            cost: 2,
            on_missing: "deny",
            on_store_failure: "allow",
            shadow: true,
            request_rejection_message: "later",
            rejection: { status: 503, body: { error: "later", tries: [2, 0.5, null, true] } },
            match: { methods: ["POST"], path: "/login", fields: { plan: ["free"] } },
          }),
          rule(7, { name: "lists", field: "ip", allow: ["10.0.0.0/8"], deny: ["192.0.2.7"] }),
        ],
      },
    ],
    async ({ source }) => {
      const { rules } = await source.load("checkout")
      const document = formatRuleDocument("checkout", rules)
      await createLimiter({ rules: parseRuleDocument(document), logger: QUIET }).close()
      expect(document.rules).toEqual([
        {
          ...rule(5),
          field: ["ip", "header:x-key"],
          algorithm: "fixed-window",
          align: "first-hit",
          notify: [80, 100],
          cost: 2,
          on_missing: "deny",
          on_store_failure: "allow",
          shadow: true,
          request_rejection_message: "later",
          rejection: { status: 503, body: { error: "later", tries: [2, 0.5, null, true] } },
          match: { methods: ["POST"], path: "/login", fields: { plan: ["free"] } },
        },
        { ...rule(7), name: "lists", field: "ip", allow: ["10.0.0.0/8"], deny: ["192.0.2.7"] },
      ])
    },
  )

  behaves("returns the version of the stored rules", stored(5), async ({ source }) => {
    expect((await source.load("checkout")).version).toBe(5)
  })

  behaves(
    "keeps the rules of services separate, and returns no rules for an unknown service",
    [
      { service_id: "checkout", rules: [rule(5)] },
      { service_id: "search", rules: [rule(9)] },
    ],
    async ({ source }) => {
      const limits = async (service: string) => (await source.load(service)).rules.map(({ limit }) => limit)
      expect([await limits("checkout"), await limits("search"), await limits("check")]).toEqual([
        [5],
        [9],
        [],
      ])
      expect(await limits("__proto__")).toEqual([])
    },
  )

  behaves(
    "returns the valid rules, and the problems of the invalid rules",
    [{ service_id: "checkout", rules: [rule(5), rule(0, { name: "wrong" }), rule(9, { name: "good" })] }],
    async ({ source }) => {
      const { rules, problems } = await source.load("checkout")
      expect(rules.map((each) => each.name)).toEqual(["rule", "good"])
      expect(problems).toHaveLength(1)
      expect(problems[0]?.path).toContain("rules[1]")
    },
  )

  behaves("loads the same rules synchronously", stored(5), async ({ source }) => {
    const { otherProblems = [], ...now } = loadedNow(source)
    expect(now).toEqual(await source.load("checkout"))
    expect(otherProblems).toEqual([])
  })

  behaves("throws from a synchronous load while the rules cannot be read", stored(5), async (opened) => {
    await opened.breakDown()
    expect(() => loadedNow(opened.source)).toThrow(RuleSourceError)
  })

  behaves(
    "lets a limiter keep its rules while a stored rule is invalid",
    stored(5),
    async ({ source, write }) => {
      const limiter = createLimiter({
        rules: liveRules(source),
        onRulesMissing: "deny",
        service: "checkout",
        logger: QUIET,
      })
      try {
        await limiter.ready()
        await write([{ service_id: "checkout", version: 6, rules: [rule(0), rule(9, { name: "other" })] }])
        await expect(limiter.refresh()).rejects.toThrow("0 is not a limit")
        const { checks } = await limiter.peek({})
        expect(checks.map(({ policy, limit }) => [policy, limit])).toEqual([["rule", 5]])
        expect(limiter.rules).toMatchObject({ version: 5, isRejected: true })
      } finally {
        await limiter.close()
      }
    },
  )

  behaves("returns the same rules to concurrent callers", stored(5), async ({ source }) => {
    const all = await Promise.all([1, 2, 3].map(() => source.load("checkout")))
    expect(all.map(({ rules }) => rules.map(({ limit }) => limit))).toEqual([[5], [5], [5]])
  })

  behaves("loads changed rules on the next load", stored(5), async ({ source, write }) => {
    await source.load("checkout")
    await write(stored(50))
    expect((await source.load("checkout")).rules).toMatchObject([{ limit: 50 }])
  })

  behaves("returns the latest rules to a call with fresh: true", stored(5), async ({ source, write }) => {
    await source.load("checkout")
    await write(stored(50))
    expect((await source.load("checkout", { fresh: true })).rules).toMatchObject([{ limit: 50 }])
    await write(stored(60))
    const [found] = await listed(source, { fresh: true })
    expect((await found?.read())?.rules).toMatchObject([{ limit: 60 }])
  })

  behaves("does not load for a signal that has been aborted", stored(5), async ({ source }) => {
    const signal = AbortSignal.abort(new Error("enough"))
    await expect(source.load("checkout", { signal })).rejects.toThrow("enough")
    await expect(source.load("checkout")).resolves.toMatchObject({ problems: [] })
  })

  behaves(
    "rejects while the rules cannot be read, and loads them once they can be read",
    stored(5),
    async (opened) => {
      const { source, write, breakDown } = opened
      await breakDown()
      await expect(source.load("checkout")).rejects.toThrow(RuleSourceError)
      await write(stored(6))
      expect((await source.load("checkout")).rules).toMatchObject([{ limit: 6 }])
    },
  )

  behaves("calls its watchers when the stored rules have changed", stored(5), async ({ source, write }) => {
    const { heard, stop } = changeOf(source)
    await source.load("checkout")
    await write(stored(50))
    await heard
    stop()
    expect((await source.load("checkout")).rules).toMatchObject([{ limit: 50 }])
  })

  behaves(
    "stops calling a watcher that was removed, and still calls the others",
    stored(5),
    async (opened) => {
      const { source, write } = opened
      let stopped = 0
      const first = source.watch?.(() => stopped++)
      const second = changeOf(source)
      await source.load("checkout")
      first?.()
      first?.()
      await write(stored(50))
      await second.heard
      second.stop()
      expect(stopped).toBe(0)
    },
  )

  behaves(
    "lists every service, with its rules",
    [
      { service_id: "checkout", version: 3, rules: [rule(5), rule(0, { name: "wrong" })] },
      { service_id: "search", rules: [rule(9)] },
      { service_id: "7", rules: [] },
    ],
    async ({ source }) => {
      const found = await listed(source)
      expect(found.map(({ service }) => service).sort()).toEqual(["7", "checkout", "search"])
      for (const { service, read } of found) {
        const { stamp: _stamp, ...loaded } = await source.load(service)
        expect(await read()).toMatchObject(loaded)
      }
    },
  )

  behaves("lists nothing if nothing is stored", [], async ({ source }) => {
    expect(await listed(source)).toEqual([])
  })

  behaves(
    "keeps the stamp of unchanged rules, and changes the stamp of changed ones",
    stored(5),
    async ({ source, write }) => {
      const other = { service_id: "search", version: 1, rules: [rule(9)] }
      const stamps = async () => new Map((await listed(source)).map(({ service, stamp }) => [service, stamp]))
      await write([...stored(5), other])
      const first = await stamps()
      await write([other, ...stored(5)])
      expect(await stamps()).toEqual(first)
      await write([...stored(6), other])
      const changed = await stamps()
      expect(changed.get("search")).toBe(first.get("search"))
      expect(changed.get("checkout")).not.toBe(first.get("checkout"))
    },
  )

  behaves("rejects a listing while the rules cannot be read", stored(5), async ({ source, breakDown }) => {
    await breakDown()
    await expect(listed(source)).rejects.toThrow(RuleSourceError)
  })

  behaves("does not list for a signal that has been aborted", stored(5), async ({ source }) => {
    await expect(listed(source, { signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough")
  })

  behaves(
    "updates a limiter, which keeps its counts when a limit changes",
    stored(5),
    async ({ source, write }) => {
      const clock = manualClock()
      const limiter = createLimiter({
        rules: liveRules(source),
        onRulesMissing: "allow",
        service: "checkout",
        clock,
        logger: QUIET,
      })
      await limiter.ready()
      expect(await limiter.decide({}, { cost: 3 })).toMatchObject({ allowed: true, limit: 5, remaining: 2 })
      await write(stored(50))
      while ((await limiter.peek({})).limit !== 50) {
        // A source with a poll interval is polled when the clock advances by that interval. If the change never
        // arrives, the test times out.
        if (source.pollMs !== undefined) clock.advance(source.pollMs)
        await delay(10)
      }
      expect(await limiter.peek({})).toMatchObject({ limit: 50, remaining: 47 })
      await limiter.close()
    },
  )
  return contract.done()
}
