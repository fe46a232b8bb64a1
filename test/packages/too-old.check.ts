import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { pairs } from "../test-length.ts"
import { frameworksOf, manifestOf, PACKAGES } from "./manifests.ts"
import { CANNOT_REQUIRE, TOO_OLD } from "./nodes.ts"
import { type ModuleSystem, Project } from "./project.ts"

/** Every entry point that contains code. */
const ENTRIES = PACKAGES.flatMap((name) =>
  Object.entries(manifestOf(name).exports ?? {})
    .filter(([, file]) => typeof file === "object")
    .map(([path]) => `@sluice/${name}${path.slice(1)}`),
)
const PROGRAMS = PACKAGES.flatMap((name) => Object.keys(manifestOf(name).bin ?? {}))

describe("a Node that is too old", () => {
  const project = new Project(CANNOT_REQUIRE)
  const nodeOf = (version: string): string => join(inject("nodes")[version] as string, "node")
  const message = (version: string): string =>
    `Sluice needs Node 20.19 or a later 20.x, or Node 22.12 or later. This is Node ${version}.`

  /** Loads an entry point, and returns the message of the resulting error. */
  async function load(version: string, type: ModuleSystem, entry: string): Promise<string> {
    const folder = project.programs(type)
    const file = `of${entry.replace(/\W/g, "-")}.js`
    folder.write(file, type === "module" ? `import "${entry}"\n` : `require("${entry}")\n`)
    const { stderr } = await folder.start(nodeOf(version), [file]).ended
    return /^Error: (.*)$/m.exec(stderr)?.[1] ?? stderr
  }

  let unfit: string[]
  beforeAll(async () => {
    unfit = await project.install(...PACKAGES, ...new Set(PACKAGES.flatMap(frameworksOf)))
  })
  afterAll(() => project.remove())

  it("gets a warning from npm during the installation", () => {
    expect(unfit.filter((name) => name.startsWith("@sluice/"))).toEqual(
      PACKAGES.map((name) => `@sluice/${name}`),
    )
  })

  it.each(pairs(ENTRIES, [...TOO_OLD, CANNOT_REQUIRE]))(
    "gets one clear line for require of %s in Node %s",
    async (entry, version) => {
      expect(await load(version, "commonjs", entry)).toBe(message(version))
    },
  )

  // The client also runs in browsers, so it does not check for Node.
  const checking = ENTRIES.filter((entry) => entry !== "@sluice/client")
  it.each(pairs(checking, TOO_OLD))(
    "gets one clear line for import of %s in Node %s",
    async (entry, version) => {
      expect(await load(version, "module", entry)).toBe(message(version))
    },
  )

  it.each(PROGRAMS)("gets one clear line from %s", async (program) => {
    for (const version of TOO_OLD) {
      const { code, stdout, stderr } = await project.start(nodeOf(version), [
        project.installed(".bin", program),
        "--help",
      ]).ended
      expect([code, stdout, stderr]).toEqual([1, "", `error: ${message(version)}\n`])
    }
  })

  it("is not the reason in a newer Node whose flag forbids require of ES modules", async () => {
    const folder = project.programs("commonjs")
    folder.write("forbidden.js", 'require("@sluice/core")\n')
    const args = ["--no-experimental-require-module", "forbidden.js"]
    const { stderr } = await folder.start(process.execPath, args).ended
    expect(stderr).toContain("Error: Cannot load the ES modules of Sluice with require(). In Jest, ")
    expect(stderr).toContain("code: 'SLUICE_CANNOT_REQUIRE'")
  })

  it("loads every entry point again when Node is new enough, as one module for import and require", async () => {
    const both = ENTRIES.map(
      (entry) => `console.log(isSame(await import("${entry}"), require("${entry}")), "${entry}")`,
    )
    // If a module has a default export, Node passes CommonJS a different object with the same members.
    const head =
      'import { createRequire } from "node:module"\nconst require = createRequire(import.meta.url)\n' +
      "const isSame = (one, other) => Object.keys(one).every((name) => one[name] === other[name])\n"
    const folder = project.programs("module")
    folder.write("both.js", `${head}${both.join("\n")}\n`)
    const { stdout, stderr } = await folder.start(process.execPath, ["both.js"]).ended
    expect(stdout.trim().split("\n"), stderr).toEqual(ENTRIES.map((entry) => `true ${entry}`))
  })
})
