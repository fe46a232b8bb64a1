import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  type RuleSourceUnderTest,
  registryContract,
  ruleSourceContract,
  type StoredRules,
} from "@sluice/contracts"
import { fileFirst, type RulesHome, rulesInMemory } from "@sluice/service"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { RuleSourceError } from "../../packages/core/src/ground/errors.ts"
import { formatRuleDocument } from "../../packages/core/src/rules/documents/format-document.ts"
import { readRuleDocument } from "../../packages/core/src/rules/documents/rule-document.ts"
import { createRuleBook } from "../../packages/rules/src/book/open-book.ts"
import type { RuleSource } from "../../packages/rules/src/source.ts"
import { runContract } from "../contracts/run-contract.ts"
import { until } from "../servers/until.ts"

/** Creates a rules file in a new folder. JSON is valid YAML. */
async function rulesFile(documents: readonly object[]) {
  const folder = await mkdtemp(join(tmpdir(), "sluice-"))
  const path = join(folder, "rules.yaml")
  const replace = async (text: string): Promise<void> => {
    await writeFile(`${path}.new`, text)
    await rename(`${path}.new`, path)
  }
  await replace(JSON.stringify(documents))
  return {
    path,
    replace,
    write: (stored: readonly object[]) => replace(JSON.stringify(stored)),
    remove: () => rm(folder, { recursive: true }),
  }
}

const document = (service_id: string, limit: number): StoredRules => ({
  service_id,
  rules: [{ name: "rule", rate: { requests_per_unit: limit, unit: "minute" } }],
})

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const value of values) list.push(value)
  return list
}

/** Removes all registered services except the given services. */
async function clear({ registry }: RulesHome, but: readonly string[] = []): Promise<void> {
  for (const { service } of await all(registry.list()))
    if (!but.includes(service)) await registry.remove(service, { version: "any" })
}

/** Replaces all registered rules with the good rules of these documents. Does not write unchanged rules again. */
async function replaceAll(home: RulesHome, documents: readonly StoredRules[]): Promise<void> {
  const { registry } = home
  for (const { service_id: service, version: wanted = 1, rules: given } of documents) {
    const { rules } = readRuleDocument({ rules: given })
    const text = (each: typeof rules): string => JSON.stringify(formatRuleDocument(service, each))
    const found = await registry.get(service)
    if (found !== undefined && text(found.rules) === text(rules) && found.version >= wanted) continue
    let version = 0
    while (version < wanted) ({ version } = await registry.register(service, rules, { version: "any" }))
  }
  await clear(
    home,
    documents.map(({ service_id }) => service_id),
  )
}

const inMemory: RuleSourceUnderTest = {
  async create(documents) {
    const home = rulesInMemory()
    await replaceAll(home, documents)
    return {
      source: home.source,
      write: (stored) => replaceAll(home, stored),
      async breakDown() {},
      async dispose() {},
    }
  },
  deviations: [
    {
      behaviour: "returns the valid rules, and the problems of the invalid rules",
      reason: "a registry refuses wrong rules",
    },
    {
      behaviour: "rejects while the rules cannot be read, and loads them once they can be read",
      reason: "memory can be read",
    },
    { behaviour: "rejects a listing while the rules cannot be read", reason: "memory can be read" },
    {
      behaviour: "throws from a synchronous load while the rules cannot be read",
      reason: "memory can be read",
    },
    {
      behaviour: "lets a limiter keep its rules while a stored rule is invalid",
      reason: "a registry refuses wrong rules",
    },
  ],
}
runContract("rules registered in memory", ruleSourceContract(inMemory))

const create = async () => ({ ...rulesInMemory(), async dispose() {} })
runContract("a registry in memory", registryContract({ create }))

const beforeRegistry: RuleSourceUnderTest = {
  async create(documents) {
    const file = await rulesFile(documents)
    const home = fileFirst(file.path, rulesInMemory(), { pollMs: 10 })
    return {
      source: home.source,
      write: file.write,
      breakDown: () => file.replace("["),
      dispose: file.remove,
    }
  },
  deviations: [
    { behaviour: "lists nothing if nothing is stored", reason: "an empty file is a mistake" },
    { behaviour: "loads the same rules synchronously", reason: "a registry may be elsewhere" },
    {
      behaviour: "throws from a synchronous load while the rules cannot be read",
      reason: "a registry may be elsewhere",
    },
  ],
}
runContract("a file before a registry, with rules in the file", ruleSourceContract(beforeRegistry))

async function behindFile() {
  const file = await rulesFile([document("of-the-file", 1)])
  return { ...fileFirst(file.path, rulesInMemory()), dispose: file.remove }
}
runContract("a registry behind a file", registryContract({ create: behindFile }))

describe("a file before a registry", () => {
  let file: Awaited<ReturnType<typeof rulesFile>>
  let home: RulesHome
  beforeEach(async () => {
    file = await rulesFile([document("1", 5)])
    home = fileFirst(file.path, rulesInMemory(), { pollMs: 10 })
  })
  afterEach(async () => {
    await home.source.close?.()
    await file.remove()
  })

  const rules = [{ name: "rule", limit: 9, window: "1 minute" }]
  const limitOf = async (service: string) => (await home.source.load(service)).rules[0]?.limit
  const listed = async () => {
    const pages = await all((home.source as Required<RuleSource>).loadAll())
    return Promise.all(
      pages.flat().map(async (found) => [found.service, (await found.read()).rules[0]?.limit]),
    )
  }

  it("contains the services of both, and refuses changes to services of the file", async () => {
    await home.registry.register("2", rules)
    expect(await listed()).toEqual([
      ["1", 5],
      ["2", 9],
    ])
    for (const change of [
      () => home.registry.register("1", rules),
      () => home.registry.register("1", rules, { version: "any" }),
      () => home.registry.remove("1", { version: "any" }),
      () => home.registry.get("1"),
    ]) {
      await expect(change()).rejects.toThrow('The rules of service "1" are in rules.yaml; change them there.')
    }
    expect([await limitOf("1"), await limitOf("2")]).toEqual([5, 9])
  })

  it("uses the file for a service that is added there, and the registry after its removal", async () => {
    await home.registry.register("2", rules)
    await file.write([document("1", 5), document("2", 7)])
    expect([await limitOf("2"), await listed()]).toEqual([
      7,
      [
        ["1", 5],
        ["2", 7],
      ],
    ])
    expect(await all(home.registry.list())).toEqual([])
    await expect(home.registry.remove("2", { version: 1 })).rejects.toThrow(
      "are in rules.yaml; change them there",
    )
    await file.write([document("1", 5)])
    expect([await limitOf("2"), (await home.registry.get("2"))?.version]).toEqual([9, 1])
  })

  it("returns no rules for a service that neither contains, even if the file has one document", async () => {
    expect(await home.source.load("3")).toEqual({ rules: [], problems: [] })
    // A service that is registered without rules differs from an unregistered one.
    await home.registry.register("3", [])
    expect(await home.source.load("3")).toMatchObject({ rules: [], version: 1 })
  })

  it("applies a document for every service if no other document names the service", async () => {
    const { rules: common } = document("", 3)
    await file.write([{ rules: common }, document("1", 5)])
    await home.registry.register("2", rules)
    expect([await limitOf("1"), await limitOf("2"), await limitOf("3")]).toEqual([5, 9, 3])
    await home.registry.remove("2", { version: 1 })
    expect(await limitOf("2")).toBe(3)
  })

  it.each([
    ["not YAML", "["],
    ["a list without a valid service", '[{"service_id": [], "rules": []}]'],
    ["a single document without a valid service", '{"service_id": [], "rules": []}'],
  ])("makes no change while the file is %s, and ignores its content", async (_, text) => {
    await home.registry.register("2", rules)
    await file.replace(text)
    await expect(home.registry.register("3", rules)).rejects.toThrow(RuleSourceError)
    await expect(home.registry.remove("2", { version: 1 })).rejects.toThrow(RuleSourceError)
    await expect(home.source.load("9")).rejects.toThrow(RuleSourceError)
    await expect(home.source.load("2")).rejects.toThrow(RuleSourceError)
    await expect(listed()).rejects.toThrow()
    await file.write([document("1", 5)])
    expect(await limitOf("2")).toBe(9)
    await home.registry.register("3", rules)
  })

  it("notifies a rule book of changes in the file and in the registry", async () => {
    const book = createRuleBook({ source: home.source, services: "all" })
    await book.ready()
    const limitIs = (service: string, limit: number | undefined) =>
      until(
        `the limit of ${service} is ${limit}`,
        () => book.rulesOf(service)?.rules[0]?.limit === limit,
        20_000,
      )
    try {
      await home.registry.register("2", rules)
      await limitIs("2", 9)
      await file.write([document("1", 6), document("2", 7)])
      await limitIs("1", 6)
      await limitIs("2", 7)
      await file.write([document("1", 6)])
      await limitIs("2", 9)
      await home.registry.remove("2", { version: "any" })
      await limitIs("2", undefined)
    } finally {
      book.close()
    }
  })

  it("is polled as often as the registry, and lists only the file's services if the registry cannot list", async () => {
    const { registry } = rulesInMemory()
    const other = { load: async () => ({ rules: [], problems: [] }), pollMs: 5_000 }
    const { source } = fileFirst(file.path, { source: other, registry })
    const pages = await all((source.loadAll as NonNullable<RuleSource["loadAll"]>)())
    const services = (await all((home.source.loadAll as NonNullable<RuleSource["loadAll"]>)())).flat()
    expect(pages.flat().map(({ service }) => service)).toEqual(services.map(({ service }) => service))
    expect([source.pollMs, home.source.pollMs]).toEqual([5_000, undefined])
    await source.close?.()
  })

  it("has a name that mentions the file and the registry", () => {
    expect(home.source.name).toBe(`rules file ${JSON.stringify(file.path)} and the registry in memory`)
  })
})

describe("the registry in memory", () => {
  it("returns a new stamp after every write, even if rules and version repeat", async () => {
    const { registry, source } = rulesInMemory()
    const stamps = new Set<string | undefined>()
    for (let round = 0; round < 3; round++) {
      await registry.register("1", [{ limit: 5, window: "1 minute" }])
      stamps.add((await source.load("1")).stamp)
      await registry.remove("1", { version: 1 })
    }
    expect(stamps.size).toBe(3)
  })

  it("reports a conflict with the same message as the registry in a table", async () => {
    const { registry } = rulesInMemory()
    const rules = [{ name: "rule", limit: 5, window: "1 minute" }]
    await expect(registry.register("checkout", rules, { version: 3 })).rejects.toThrow(
      'Service "checkout" has no rules, but version 3 was expected. Nothing was changed. Write without a version to register them again',
    )
    await registry.register("checkout", rules)
    for (const [version, expected] of [
      [undefined, "no rules were"],
      [0, "rules without a version were"],
      [3, "version 3 was"],
    ] as const) {
      await expect(registry.register("checkout", rules, { version })).rejects.toThrow(
        `Service "checkout" has version 1, but ${expected} expected. Nothing was changed. Read the stored rules, and write again with version: 1`,
      )
    }
  })

  it("keeps no reference to the caller's objects", async () => {
    const { registry } = rulesInMemory()
    const given = { limit: 5, window: "1 minute" }
    await registry.register("1", [given])
    given.limit = 500
    expect((await registry.get("1"))?.rules).toMatchObject([{ limit: 5 }])
  })
})
