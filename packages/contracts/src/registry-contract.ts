import { inspect } from "node:util"
import { InvalidOptionError, InvalidRuleError } from "@sluice/core"
import { RuleConflictError, type RuleRegistry, type RuleSource, type StorableRule } from "@sluice/rules"
import { expect } from "expect"
import { type Behaviour, Contract, type Deviation } from "./behaviour.ts"

/** An empty registry, and the source that reads the rules which the registry writes. */
export interface OpenedRegistry {
  /** The registry. */
  readonly registry: RuleRegistry
  /** A source of the rules in the registry. */
  readonly source: RuleSource
  /** Removes everything that was created for the test. */
  dispose(): Promise<void>
}

/** A registry to be tested against the contract. */
export interface RegistryUnderTest {
  /** Creates an empty registry. */
  create(): Promise<OpenedRegistry>
  /** Known deviations from the contract. Default: none. */
  readonly deviations?: readonly Deviation[]
}

const rule = (limit: number): StorableRule => ({ name: "rule", field: "service", limit, window: "1 minute" })
async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const value of values) list.push(value)
  return list
}
const limits = (rules: readonly StorableRule[] | undefined): unknown => rules?.map(({ limit }) => limit)

/** Returns the conflict error with which a change rejects. */
async function conflict(change: Promise<unknown>): Promise<RuleConflictError> {
  const error = await change.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(RuleConflictError)
  return error as RuleConflictError
}

/**
 * Returns the behaviors of every registry, {@link RuleRegistry} in `@sluice/core`. A registry registers, replaces,
 * lists and removes rules if the stored version is the one that the caller has seen. If many callers write at the
 * same time, one write succeeds.
 * @throws Error if a deviation names an unknown behavior
 */
export function registryContract({ create, deviations }: RegistryUnderTest): readonly Behaviour[] {
  const contract = new Contract(deviations)

  function behaves(behaviour: string, show: (opened: OpenedRegistry) => Promise<void>): void {
    contract.add(behaviour, async () => {
      const opened = await create()
      try {
        await show(opened)
      } finally {
        await opened.dispose()
      }
    })
  }

  behaves("contains no services at first", async ({ registry }) => {
    expect(await registry.get("checkout")).toBeUndefined()
    expect(await all(registry.list())).toEqual([])
    expect(await registry.remove("checkout", { version: "any" })).toBe(false)
    expect(await registry.remove("checkout", { version: 7 })).toBe(false)
  })

  behaves("registers rules, and returns them with version 1", async ({ registry, source }) => {
    const given: StorableRule[] = [
      { ...rule(5), field: ["ip", "route"], shadow: true },
      { field: "service", limit: 9, window: 1500 },
      { field: "ip", concurrent: 5, hold: "30 seconds" },
      { field: "ip", limit: 5, per: "month", timeZone: "Europe/Berlin", anchor: 31 },
    ]
    const first = { service: "checkout", version: 1, rules: given, problems: [] }
    expect(await registry.register("checkout", given)).toEqual(first)
    expect(await registry.get("checkout")).toEqual(first)
    expect(await source.load("checkout", { fresh: true })).toMatchObject({
      rules: given,
      version: 1,
      problems: [],
    })
  })

  behaves("registers an empty list of rules, which differs from no registration", async ({ registry }) => {
    await registry.register("checkout", [])
    expect(await registry.get("checkout")).toEqual({
      service: "checkout",
      version: 1,
      rules: [],
      problems: [],
    })
  })

  behaves(
    "replaces rules if the given version is stored, and increases the version by one",
    async ({ registry }) => {
      const { version } = await registry.register("checkout", [rule(5)])
      expect(await registry.register("checkout", [rule(6)], { version })).toMatchObject({ version: 2 })
      expect(await registry.register("checkout", [rule(7)], { version: 2 })).toMatchObject({ version: 3 })
      expect(limits((await registry.get("checkout"))?.rules)).toEqual([7])
    },
  )

  behaves(
    "rejects a write based on another version, with the stored rules in the error",
    async ({ registry }) => {
      await registry.register("checkout", [rule(5)])
      await registry.register("checkout", [rule(6)], { version: 1 })
      for (const version of [undefined, 0, 1, 3]) {
        const error = await conflict(registry.register("checkout", [rule(7)], { version }))
        expect(error).toMatchObject({ code: "SLUICE_RULE_CONFLICT", service: "checkout" })
        expect(error.found).toMatchObject({ version: 2, rules: [rule(6)] })
        expect(error.message).toContain("version 2")
      }
      expect(limits((await registry.get("checkout"))?.rules)).toEqual([6])
    },
  )

  behaves("rejects a write based on rules that were removed", async ({ registry }) => {
    const error = await conflict(registry.register("checkout", [rule(7)], { version: 1 }))
    expect(error.found).toBeUndefined()
    expect(await registry.get("checkout")).toBeUndefined()
  })

  behaves('replaces any stored version for "any"', async ({ registry }) => {
    expect(await registry.register("checkout", [rule(5)], { version: "any" })).toMatchObject({ version: 1 })
    expect(await registry.register("checkout", [rule(6)], { version: "any" })).toMatchObject({ version: 2 })
  })

  behaves("removes rules if the given version is stored", async ({ registry }) => {
    await registry.register("checkout", [rule(5)])
    const error = await conflict(registry.remove("checkout", { version: 2 }))
    expect(error.found).toMatchObject({ version: 1, rules: [rule(5)] })
    expect(await registry.remove("checkout", { version: 1 })).toBe(true)
    expect(await registry.remove("checkout", { version: 1 })).toBe(false)
    expect(await registry.get("checkout")).toBeUndefined()
    await registry.register("checkout", [rule(5)])
    expect(await registry.remove("checkout", { version: "any" })).toBe(true)
  })

  behaves("keeps the rules of services separate, and lists all services", async ({ registry }) => {
    await registry.register("checkout", [rule(5)])
    await registry.register("search", [rule(9)])
    await registry.register("__proto__", [rule(7)])
    const listed = await all(registry.list())
    const found = listed.map(({ service, version, rules }) => [service, version, limits(rules)])
    expect(found.sort()).toEqual([
      ["__proto__", 1, [7]],
      ["checkout", 1, [5]],
      ["search", 1, [9]],
    ])
  })

  behaves("rejects invalid rules with every problem, before anything is written", async ({ registry }) => {
    const wrong: StorableRule[] = [
      { field: "service", limit: 0, window: "soon" },
      rule(5),
      { field: "service", limit: () => 5, window: "1m" },
    ]
    const paths = (error: unknown): unknown =>
      error instanceof InvalidRuleError && error.problems.map(({ path }) => path)
    const error = await registry.register("checkout", wrong).catch((reason: unknown) => reason)
    expect(paths(error)).toEqual(["rules[0].limit", "rules[0].window", "rules[2].limit"])
    const unnamed = await registry.register("", [rule(5)]).catch((reason: unknown) => reason)
    expect(paths(unnamed)).toEqual(["service_id"])
    expect(await all(registry.list())).toEqual([])
  })

  behaves("stores the owner of the service, and keeps it until it is replaced", async (opened) => {
    const { registry, source } = opened
    const metadata = {
      owner: "payments",
      description: "pays",
      contact: "#pay",
      link: "https://example.com/limits",
    }
    const first = { service: "checkout", version: 1, rules: [rule(5)], metadata, problems: [] }
    expect(await registry.register("checkout", [rule(5)], { metadata })).toEqual(first)
    expect(await registry.get("checkout")).toEqual(first)
    expect(await all(registry.list())).toEqual([first])
    expect(await source.load("checkout", { fresh: true })).toMatchObject({ metadata })
    for (const version of [1, "any"] as const) {
      expect(await registry.register("checkout", [rule(6)], { version })).toMatchObject({ metadata })
    }
    expect(await registry.get("checkout")).toMatchObject({ version: 3, metadata })
    const owner = { owner: "search" }
    expect(await registry.register("checkout", [rule(6)], { version: 3, metadata: owner })).toMatchObject({
      version: 4,
    })
    expect((await registry.get("checkout"))?.metadata).toEqual(owner)
    const removed = { service: "checkout", version: 5, rules: [rule(6)], problems: [] }
    expect(await registry.register("checkout", [rule(6)], { version: 4, metadata: {} })).toEqual(removed)
    expect(await registry.get("checkout")).toEqual(removed)
  })

  behaves("rejects invalid metadata, before anything is written", async ({ registry }) => {
    const metadata = { link: "javascript:alert(1)" }
    const error = await registry
      .register("checkout", [rule(5)], { metadata })
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(InvalidRuleError)
    expect((error as InvalidRuleError).problems).toMatchObject([{ path: "metadata.link" }])
    expect(await registry.get("checkout")).toBeUndefined()
  })

  behaves("does not remove rules without a version", async ({ registry }) => {
    await registry.register("checkout", [rule(5)])
    for (const options of [undefined, {}, { version: undefined }]) {
      const removing = registry.remove("checkout", options as never)
      await expect(removing).rejects.toThrow(InvalidOptionError)
      await expect(removing).rejects.toThrow(
        'version: is missing; accepted: 0 or a positive whole number, or "any"',
      )
    }
    expect(await registry.get("checkout")).toMatchObject({ version: 1 })
  })

  for (const version of [-1, 1.5, Number.NaN, Number.MAX_SAFE_INTEGER, "1", null]) {
    behaves(`refuses the version ${inspect(version)}`, async ({ registry }) => {
      const options = { version: version as number }
      await expect(registry.register("checkout", [rule(5)], options)).rejects.toThrow(InvalidOptionError)
      await expect(registry.remove("checkout", options)).rejects.toThrow(InvalidOptionError)
    })
  }

  behaves("does nothing for a signal that has been aborted", async ({ registry }) => {
    const signal = AbortSignal.abort(new Error("enough"))
    await expect(registry.register("checkout", [rule(5)], { signal })).rejects.toThrow("enough")
    await registry.register("checkout", [rule(5)])
    await expect(registry.remove("checkout", { version: 1, signal })).rejects.toThrow("enough")
    await expect(registry.get("checkout", { signal })).rejects.toThrow("enough")
    await expect(all(registry.list({ signal }))).rejects.toThrow("enough")
    expect(await registry.get("checkout")).toMatchObject({ version: 1 })
  })

  behaves(
    "lets exactly one of many concurrent writers win each version, and loses no write",
    async ({ registry }) => {
      const wins: number[] = []
      for (let round = 0; round < 2; round++) {
        const writers = Array.from({ length: 100 }, (_, i) =>
          registry.register("checkout", [rule(1000 * round + i + 1)], { version: round }),
        )
        const outcomes = await Promise.allSettled(writers)
        const won = outcomes.filter(({ status }) => status === "fulfilled")
        const lost = outcomes.flatMap((each) => (each.status === "rejected" ? [each.reason] : []))
        expect(lost.filter((reason) => !(reason instanceof RuleConflictError))).toEqual([])
        wins.push(won.length)
        const winner = outcomes.findIndex(({ status }) => status === "fulfilled")
        const there = await registry.get("checkout")
        expect([there?.version, limits(there?.rules)]).toEqual([round + 1, [1000 * round + winner + 1]])
      }
      expect(wins).toEqual([1, 1])
    },
  )

  behaves('gives each of many concurrent writes with "any" its own version', async ({ registry }) => {
    const writers = Array.from({ length: 20 }, (_, i) =>
      registry.register("checkout", [rule(i + 1)], { version: "any" }),
    )
    const versions = (await Promise.all(writers)).map(({ version }) => version)
    expect(versions.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
  })
  return contract.done()
}
