import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { InvalidOptionError, InvalidRuleError } from "../../packages/core/src/errors.ts"
import { RuleConflictError, type RuleRegistry } from "../../packages/core/src/rules/registry.ts"
import type { Rule } from "../../packages/core/src/rules/rule.ts"
import type { RuleSource } from "../../packages/core/src/rules/source.ts"

/** A registry and the source that reads what it writes. */
export interface OpenedRegistry {
  readonly registry: RuleRegistry
  readonly source: RuleSource
  /** Removes every rule. */
  clear(): Promise<void>
  dispose(): Promise<void>
}

const rule = (limit: number): Rule => ({ name: "rule", limit, window: "1 minute" })
async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const value of values) list.push(value)
  return list
}
const limits = (rules: readonly Rule[] | undefined): unknown => rules?.map(({ limit }) => limit)

/** The behaviour of every registry: run it with a function that opens an empty one. */
export function registryContract(name: string, open: () => Promise<OpenedRegistry>): void {
  describe(name, () => {
    let opened: OpenedRegistry
    let registry: RuleRegistry
    beforeAll(async () => {
      opened = await open()
      registry = opened.registry
    })
    afterAll(() => opened.dispose())
    beforeEach(() => opened.clear())

    const conflict = async (change: Promise<unknown>): Promise<RuleConflictError> => {
      const error = await change.then(
        () => undefined,
        (reason: unknown) => reason,
      )
      expect(error).toBeInstanceOf(RuleConflictError)
      return error as RuleConflictError
    }

    it("has nothing at first", async () => {
      expect(await registry.get("checkout")).toBeUndefined()
      expect(await all(registry.list())).toEqual([])
      expect(await registry.remove("checkout", { version: "any" })).toBe(false)
      expect(await registry.remove("checkout", { version: 7 })).toBe(false)
    })

    it("registers rules, and yields them with version 1", async () => {
      const given: Rule[] = [
        { ...rule(5), field: ["ip", "route"], shadow: true },
        { limit: 9, window: 1500 },
      ]
      const first = { service: "checkout", version: 1, rules: given, problems: [] }
      expect(await registry.register("checkout", given)).toEqual(first)
      expect(await registry.get("checkout")).toEqual(first)
      expect(await opened.source.load("checkout", { fresh: true })).toMatchObject({
        rules: given,
        version: 1,
        problems: [],
      })
    })

    it("registers no rules at all, which is not the same as nothing", async () => {
      await registry.register("checkout", [])
      expect(await registry.get("checkout")).toEqual({
        service: "checkout",
        version: 1,
        rules: [],
        problems: [],
      })
    })

    it("replaces rules on the version that was seen, and the version grows by one", async () => {
      const { version } = await registry.register("checkout", [rule(5)])
      expect(await registry.register("checkout", [rule(6)], { version })).toMatchObject({ version: 2 })
      expect(await registry.register("checkout", [rule(7)], { version: 2 })).toMatchObject({ version: 3 })
      expect(limits((await registry.get("checkout"))?.rules)).toEqual([7])
    })

    it("tells who has not seen what is there that it conflicts, and carries it", async () => {
      await registry.register("checkout", [rule(5)])
      await registry.register("checkout", [rule(6)], { version: 1 })
      for (const version of [undefined, 0, 1, 3]) {
        const error = await conflict(registry.register("checkout", [rule(7)], { version }))
        expect(error).toMatchObject({ code: "SLUICE_RULE_CONFLICT", service: "checkout" })
        expect(error.found).toMatchObject({ version: 2, rules: [rule(6)] })
        expect(error.message).toContain("version 2")
      }
      expect(limits((await registry.get("checkout"))?.rules)).toEqual([6])
    })

    it("tells who has seen what is there no more that it conflicts", async () => {
      const error = await conflict(registry.register("checkout", [rule(7)], { version: 1 }))
      expect(error.found).toBeUndefined()
      expect(await registry.get("checkout")).toBeUndefined()
    })

    it('writes over whatever is there for "any"', async () => {
      expect(await registry.register("checkout", [rule(5)], { version: "any" })).toMatchObject({ version: 1 })
      expect(await registry.register("checkout", [rule(6)], { version: "any" })).toMatchObject({ version: 2 })
    })

    it("removes rules on the version that was seen", async () => {
      await registry.register("checkout", [rule(5)])
      const error = await conflict(registry.remove("checkout", { version: 2 }))
      expect(error.found).toMatchObject({ version: 1, rules: [rule(5)] })
      expect(await registry.remove("checkout", { version: 1 })).toBe(true)
      expect(await registry.remove("checkout", { version: 1 })).toBe(false)
      expect(await registry.get("checkout")).toBeUndefined()
      await registry.register("checkout", [rule(5)])
      expect(await registry.remove("checkout", { version: "any" })).toBe(true)
    })

    it("keeps services apart, and lists them all", async () => {
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

    it("refuses wrong rules with every problem, before anything is written", async () => {
      const wrong: Rule[] = [{ limit: 0, window: "soon" }, rule(5), { limit: () => 5, window: "1m" }]
      const paths = (error: unknown): unknown =>
        error instanceof InvalidRuleError && error.problems.map(({ path }) => path)
      const error = await registry.register("checkout", wrong).catch((reason: unknown) => reason)
      expect(paths(error)).toEqual(["rules[0].limit", "rules[0].window", "rules[2].limit"])
      const unnamed = await registry.register("", [rule(5)]).catch((reason: unknown) => reason)
      expect(paths(unnamed)).toEqual(["service_id"])
      expect(await all(registry.list())).toEqual([])
    })

    it("does not remove rules for who does not say which", async () => {
      await registry.register("checkout", [rule(5)])
      for (const options of [undefined, {}, { version: undefined }]) {
        const removing = registry.remove("checkout", options as never)
        await expect(removing).rejects.toThrow(InvalidOptionError)
        await expect(removing).rejects.toThrow(
          'version: is missing; accepted: a whole number from 0, or "any"',
        )
      }
      expect(await registry.get("checkout")).toMatchObject({ version: 1 })
    })

    it.each([-1, 1.5, Number.NaN, Number.MAX_SAFE_INTEGER, "1", null])(
      "refuses the version %s",
      async (version) => {
        const options = { version: version as number }
        await expect(registry.register("checkout", [rule(5)], options)).rejects.toThrow(InvalidOptionError)
        await expect(registry.remove("checkout", options)).rejects.toThrow(InvalidOptionError)
      },
    )

    it("does nothing for a signal that has been aborted", async () => {
      const signal = AbortSignal.abort(new Error("enough"))
      await expect(registry.register("checkout", [rule(5)], { signal })).rejects.toThrow("enough")
      await registry.register("checkout", [rule(5)])
      await expect(registry.remove("checkout", { version: 1, signal })).rejects.toThrow("enough")
      await expect(registry.get("checkout", { signal })).rejects.toThrow("enough")
      await expect(all(registry.list({ signal }))).rejects.toThrow("enough")
      expect(await registry.get("checkout")).toMatchObject({ version: 1 })
    })

    it("lets one of many who write at once win each version, and loses nothing", async () => {
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
    })

    it('gives each of many who write over "any" a version of its own', async () => {
      const writers = Array.from({ length: 20 }, (_, i) =>
        registry.register("checkout", [rule(i + 1)], { version: "any" }),
      )
      const versions = (await Promise.all(writers)).map(({ version }) => version)
      expect(versions.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
    })
  })
}
