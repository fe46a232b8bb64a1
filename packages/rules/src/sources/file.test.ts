import { spawnSync } from "node:child_process"
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { inspect } from "node:util"
import { InvalidOptionError, InvalidRuleError, RuleSourceError } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { examples } from "../../../../test/test-length.ts"
import type { LoadedRules } from "../source.ts"
import { type FileRulesOptions, fileRules } from "./file.ts"

let folder: string
let file: string
const stops: (() => void)[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-file-"))
  file = join(folder, "rules.yaml")
})
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
  rmSync(folder, { recursive: true })
})

const text = (limit: number): string => `rules:\n  - { limit: ${limit}, window: 1m }\n`

/** Opens a source on the file. Returns the source with the limits that it loads, and a promise of its next change. */
function open(options?: FileRulesOptions, path = file) {
  const source = fileRules(path, options)
  return {
    source,
    limits: async () => (await source.load("a")).rules.map(({ limit }) => limit),
    nextChange: () =>
      new Promise<void>((resolve) => {
        const stop = source.watch?.(() => {
          stop?.()
          resolve()
        })
        stops.push(() => stop?.())
      }),
  }
}

describe("an error about invalid rules", () => {
  test.each([
    ["of another service", "service_id: a\nrules: []\n---\nservice_id: b\nrules: [{ limit: x, window: 1m }]"],
    ["of a missing document", "service_id: b\nrules: []\n---\nservice_id: c\nrules: []"],
    [
      "of a second document",
      "service_id: b\nrules: []\n---\nservice_id: b\nrules: []\n---\nservice_id: a\nrules: []",
    ],
  ])("names the file for a problem %s", (_what, content) => {
    writeFileSync(file, content)
    const { otherProblems = [] } = fileRules(file).loadSync?.("a") ?? {}
    expect(otherProblems.length).toBeGreaterThan(0)
    expect(new InvalidRuleError(otherProblems).message).toContain(`Wrong rules in ${JSON.stringify(file)}:`)
  })

  test.each([
    ["belongs to another service", "service_id: b\nrules: []", "a"],
    ["has no service that can be read", "service_id: []\nrules: []", "a"],
  ])("names the file if the only document %s", async (_what, content, service) => {
    writeFileSync(file, content)
    const { problems } = await fileRules(file).load(service)
    expect(problems.map((problem) => problem.file)).toEqual([file])
  })
})

describe("loading", () => {
  test("reads a file of 1 MiB and rejects a larger file by default", async () => {
    const { source, limits } = open()
    const padded = (bytes: number) => `${text(5)}#`.padEnd(bytes, "-")
    writeFileSync(file, padded(2 ** 20))
    expect(await limits()).toEqual([5])
    writeFileSync(file, padded(2 ** 20 + 1))
    await expect(source.load("a")).rejects.toThrow(
      "has 1048577 bytes, more than 1048576: shorten it, or raise the option maxBytes",
    )
    expect(await open({ maxBytes: 2 ** 20 + 1 }).limits()).toEqual([5])
  })

  test.each([
    ["rules.yaml", text(5)],
    ["rules.yml", `\ufeff${text(5)}`],
    ["rules", text(5)],
    ["rules.json", '{"rules": [{"limit": 5, "window": "1m"}]}'],
    ["RULES.JSON", '[{"rules": [{"limit": 5, "window": "1m"}]}]'],
    ["several.yaml", `service_id: b\nrules: []\n---\n${text(5)}---\n`],
    ["list.yaml", `- rules: [{ limit: 5, window: 1m }]\n`],
  ])("reads %s", async (name, content) => {
    writeFileSync(join(folder, name), content)
    expect(await open({}, join(folder, name)).limits()).toEqual([5])
    expect((await fileRules(pathToFileURL(join(folder, name))).load("a")).rules).toHaveLength(1)
  })

  test("parses a file whose name ends in .json strictly as JSON", async () => {
    const path = join(folder, "rules.json")
    writeFileSync(path, '{\n  "rules": [\n    { limit: 5 }\n  ]\n}')
    await expect(fileRules(path).load("a")).rejects.toThrow(
      `Rules file ${JSON.stringify(path)} is not JSON: line 3, column 7: a name in double quotes is expected`,
    )
    writeFileSync(path, "null")
    expect((await fileRules(path).load("a")).problems).toMatchObject([
      { path: "", message: "null is not a rule document" },
    ])
  })

  test("notices a change at the next load, even without a watcher", async () => {
    const { limits } = open()
    writeFileSync(file, text(5))
    expect(await limits()).toEqual([5])
    writeFileSync(file, text(50))
    expect(await limits()).toEqual([50])
  })

  test("reads the file once for all concurrent loads, and not again until it changes", async () => {
    writeFileSync(file, text(5))
    const { source } = open()
    const [a, b] = await Promise.all([source.load("a"), source.load("b")])
    const c = await source.load("c")
    expect(a.rules).toBe(b.rules)
    expect(a.rules).toBe(c.rules)
    writeFileSync(file, text(5))
    expect((await source.load("a")).rules).toBe(a.rules)
  })

  test("returns the latest write to a fresh load, even if the file's modification time has not changed", async () => {
    const { source } = open()
    const write = (limit: number) => writeFileSync(file, `service_id: a\n${text(limit)}`)
    const last = examples(140, 300)
    for (let limit = 100; limit < last; limit += 2) {
      write(limit)
      expect((await source.load("a", { fresh: true })).rules).toMatchObject([{ limit }])
      write(limit + 1)
      for await (const [found] of source.loadAll?.({ fresh: true }) ?? []) {
        expect((await found?.read())?.rules).toMatchObject([{ limit: limit + 1 }])
      }
    }
  })

  test("reads the file once more for all fresh loads that start during a read", async () => {
    writeFileSync(file, text(5))
    const { source, limits } = open()
    await limits()
    const fresh: Promise<LoadedRules>[] = []
    // Runs after a read has the text, but before the callers of that read receive it.
    const stop = source.watch?.(() => {
      writeFileSync(file, text(7))
      fresh.push(...["a", "b"].map((service) => source.load(service, { fresh: true })))
      stop?.()
    })
    stops.push(() => stop?.())
    writeFileSync(file, text(6))
    expect(await limits()).toEqual([6])
    const [a, b] = await Promise.all(fresh)
    expect(a?.rules).toMatchObject([{ limit: 7 }])
    expect(b?.rules).toBe(a?.rules)
  })

  test("rejects a missing file with a code, the path and the cause, and reads it once it exists", async () => {
    const { source, limits } = open()
    const error = await source.load("a").catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RuleSourceError)
    expect(error).toMatchObject({ code: "SLUICE_RULE_SOURCE", cause: { code: "ENOENT" } })
    writeFileSync(file, text(5))
    expect(await limits()).toEqual([5])
  })

  test.each([
    ["rules: [ {\n", "Flow map"],
    ["", "is empty"],
  ])("rejects the content %j with an error that shows the mistake only once", async (content, mistake) => {
    writeFileSync(file, content)
    const error = await open()
      .source.load("a")
      .catch((thrown: unknown) => thrown)
    expect(inspect(error).split(mistake)).toHaveLength(2)
  })

  test("rejects a folder, and a path below a file", async () => {
    writeFileSync(file, text(5))
    await expect(fileRules(folder).load("a")).rejects.toThrow(
      "is not a file: give the path of a YAML or JSON file",
    )
    await expect(fileRules(join(file, "below.yaml")).load("a")).rejects.toThrow("does not exist")
  })

  test("rejects with any other reason why the file cannot be read", async () => {
    symlinkSync(file, file)
    await expect(open().limits()).rejects.toThrow(/cannot be read: ELOOP/)
  })

  test("does not start if the signal is already aborted", async () => {
    writeFileSync(file, text(5))
    const load = open().source.load("a", { signal: AbortSignal.abort(new Error("no more")) })
    await expect(load).rejects.toThrow("no more")
  })
})

describe("watching", () => {
  const never = { pollMs: 2 ** 31 - 1 }

  test.each([
    ["written again", () => writeFileSync(file, text(6))],
    [
      "written twice at the same time with strings of the same length",
      () => {
        writeFileSync(file, text(7))
        writeFileSync(file, text(6))
      },
    ],
    ["appended to", () => appendFileSync(file, "  - { limit: 6, window: 1h }\n")],
    [
      "replaced by a rename, as editors do",
      () => {
        writeFileSync(join(folder, "rules.yaml~"), text(6))
        renameSync(join(folder, "rules.yaml~"), file)
      },
    ],
  ])("reloads a file that is %s", async (_name, change) => {
    writeFileSync(file, text(5))
    const { limits, nextChange } = open(never)
    expect(await limits()).toEqual([5])
    const changed = nextChange()
    change()
    await changed
    expect((await limits()).at(-1)).toBe(6)
  })

  test("follows a link that is switched to another folder, as Kubernetes does", async () => {
    for (const [name, limit] of [
      ["v1", 5],
      ["v2", 6],
    ] as const) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, "rules.yaml"), text(limit))
    }
    symlinkSync("v1", join(folder, "..data"))
    symlinkSync(join("..data", "rules.yaml"), file)
    const { limits, nextChange } = open(never)
    expect(await limits()).toEqual([5])
    const changed = nextChange()
    symlinkSync("v2", join(folder, "..data_tmp"))
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"))
    await changed
    expect(await limits()).toEqual([6])
  })

  test("reports when a file becomes invalid, and when it is valid again", async () => {
    writeFileSync(file, text(5))
    const { limits, nextChange } = open(never)
    expect(await limits()).toEqual([5])
    const bad = nextChange()
    writeFileSync(file, "rules: [")
    await bad
    await expect(limits()).rejects.toThrow(RuleSourceError)
    const good = nextChange()
    writeFileSync(file, text(6))
    await good
    expect(await limits()).toEqual([6])
  })

  test("finds a file by polling if its folder does not exist yet", async () => {
    const later = join(folder, "later")
    const { limits, nextChange } = open({ pollMs: 5 }, join(later, "rules.yaml"))
    const changed = nextChange()
    await expect(limits()).rejects.toThrow("does not exist")
    mkdirSync(later)
    writeFileSync(join(later, "rules.yaml"), text(6))
    await changed
    expect(await limits()).toEqual([6])
  })

  test("notifies every listener of a change, except one that has stopped", async () => {
    writeFileSync(file, text(5))
    const { source, limits } = open(never)
    let heard = 0
    await new Promise<void>((resolve) => {
      const changed = () => {
        heard += 1
        resolve()
      }
      const stopFirst = source.watch?.(changed)
      stops.push(source.watch?.(changed) as () => void)
      stopFirst?.()
      void limits().then(() => {
        expect(heard).toBe(0)
        writeFileSync(file, text(6))
      })
    })
    expect(heard).toBe(1)
  })

  test("notices a change that does not affect the length, even if it quickly follows another change", async () => {
    const { source, limits, nextChange } = open(never)
    for (let round = 0; round < examples(3, 8); round++) {
      writeFileSync(file, text(5))
      await limits()
      const changed = nextChange()
      writeFileSync(file, text(6))
      await changed
      expect(await limits()).toEqual([6])
      await source.close?.()
    }
  })

  test("notifies all listeners of a change that a load notices first", async () => {
    writeFileSync(file, text(5))
    const { source, limits } = open(never)
    await limits()
    let heard = 0
    stops.push(source.watch?.(() => heard++) as () => void)
    writeFileSync(file, text(50))
    expect(await limits()).toEqual([50])
    expect(heard).toBe(1)
  })

  test("does not report a write without a change, or a change of another file in the folder", async () => {
    writeFileSync(file, text(5))
    const { source, limits, nextChange } = open(never)
    await limits()
    let heard = 0
    stops.push(source.watch?.(() => heard++) as () => void)
    writeFileSync(file, text(5))
    expect(await limits()).toEqual([5])
    writeFileSync(join(folder, "other.yaml"), "x")
    expect(await limits()).toEqual([5])
    expect(heard).toBe(0)
    const changed = nextChange()
    writeFileSync(file, text(6))
    await changed
    expect(heard).toBe(1)
  })

  test("does not keep the process alive", () => {
    writeFileSync(file, text(5))
    const script = `
      import { fileRules } from ${JSON.stringify(new URL("./file.ts", import.meta.url).href)}
      const source = fileRules(${JSON.stringify(file)})
      source.watch(() => {})
      await source.load("a")
      console.log("watching")`
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href
    const child = spawnSync(process.execPath, ["--import", tsx, "--input-type=module", "-e", script], {
      encoding: "utf8",
      timeout: 100_000,
    })
    expect(child).toMatchObject({ stdout: "watching\n", status: 0, signal: null })
  })

  test("ends for all listeners on close, but a closed source can still be loaded", async () => {
    writeFileSync(file, text(5))
    const { source, limits } = open(never)
    await limits()
    let heard = 0
    const stop = source.watch?.(() => heard++)
    await source.close?.()
    writeFileSync(file, text(50))
    expect(await limits()).toEqual([50])
    expect(heard).toBe(0)
    stop?.()
  })
})

describe("fileRules", () => {
  test.each([
    ["maxBytes", { maxBytes: 0 }, "0 is not a valid size"],
    ["maxBytes", { maxBytes: "1 MiB" }, '"1 MiB" is not a valid size'],
    ["pollMs", { pollMs: 0.5 }, "0.5 is not an interval"],
    ["pollMs", { pollMs: 2 ** 31 }, "2147483648 is not an interval"],
    ["poll", { poll: 5 }, 'is not an option of fileRules(); did you mean "pollMs"?'],
  ])("rejects an invalid %s: %j", (path, options, message) => {
    expect(() => fileRules("rules.yaml", options as FileRulesOptions)).toThrow(InvalidOptionError)
    expect(() => fileRules("rules.yaml", options as FileRulesOptions)).toThrow(
      expect.objectContaining({ problems: [expect.objectContaining({ path, message })] }),
    )
  })

  test.each([[""], ["a\0b"], [new URL("https://example.com/rules.yaml")], [undefined], [5]])(
    "rejects %s, which is not a path",
    (path) => {
      expect(() => fileRules(path as string)).toThrow(/Wrong options: path: .* is not the path of a file/)
    },
  )
})
