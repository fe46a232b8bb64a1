import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ADAPTERS, frameworksOf, LIBRARIES, manifestOf, PACKAGES } from "./manifests.ts"
import { NODE_24 } from "./nodes.ts"
import { programOf } from "./program.ts"
import { MODULE_SYSTEMS, Project } from "./project.ts"
import { blocksOf } from "./quick-start.ts"
import { publish, publishAll, type Registry, startRegistry } from "./registry.ts"
import { pnpm } from "./tarballs.ts"
import { versionOf } from "./versions.ts"

/**
 * A module finds only packages that its own package declares, and peer dependencies are not installed automatically.
 */
const STRICT = "node-linker=isolated\nhoist=false\npublic-hoist-pattern=\nauto-install-peers=false\n"

let registry: Registry
const project = new Project(NODE_24)
beforeAll(async () => {
  registry = await startRegistry()
})
afterAll(async () => {
  await registry.stop()
  project.remove()
})

describe("npm publish --dry-run", () => {
  it.concurrent.each(PACKAGES)(
    "accepts the tarball of @sluice/%s without correcting it, and needs no account",
    async (name) => {
      const { stdout, stderr } = await publish(
        project,
        registry.url,
        name,
        "--dry-run",
        "--json",
        "--loglevel=warn",
      )
      const { version } = manifestOf(name)
      expect(stdout).toContain(`"id": "@sluice/${name}@${version}"`)
      const warnings = stderr.split("\n").filter((line) => line !== "" && !line.includes("logged in"))
      expect(warnings).toEqual([])
    },
  )

  it("publishes nothing", () => {
    expect(registry.published).toEqual([])
  })
})

describe("from a registry with all packages,", () => {
  beforeAll(() => publishAll(project, registry))

  describe("an empty project that installs every package by its name", () => {
    beforeAll(async () => {
      // The core is installed as a dependency of the other packages.
      const named = PACKAGES.filter((name) => name !== "core").map((name) => `@sluice/${name}`)
      await project.run("npm", "install", ...named, ...ADAPTERS.flatMap(frameworksOf).map(versionOf))
    })

    it.each(PACKAGES)("has @sluice/%s, which refers to the others by their versions", (name) => {
      const manifest = JSON.parse(project.read(`node_modules/@sluice/${name}/package.json`))
      expect(manifest.version).toBe(manifestOf("core").version)
      const ranges = Object.entries<string>({ ...manifest.dependencies, ...manifest.peerDependencies })
      const ours = ranges.filter(([other]) => other.startsWith("@sluice/")).map(([, range]) => range)
      for (const range of ours) expect([`^${manifest.version}`, ">=0.1.0 <1.0.0"]).toContain(range)
      expect(JSON.stringify(manifest)).not.toContain('"workspace:^')
    })

    it.each(MODULE_SYSTEMS)('loads every library with "type": "%s"', async (type) => {
      const folder = project.programs(type)
      const imports = Object.fromEntries(LIBRARIES.map((name) => [`@sluice/${name}`, []]))
      folder.write("program.js", programOf(type, imports, ""))
      expect(await folder.run("node", "program.js")).toMatchObject({ stdout: "", stderr: "" })
    })

    it("passes the contract in the README of @sluice/contracts", async () => {
      const [test = ""] = blocksOf(project, "contracts", "ts")
      project.write("contract.mjs", test)
      const { stdout } = await project.run("node", "--test-reporter=tap", "contract.mjs")
      expect(stdout).toMatch(/^# pass \d{3}$/m)
      expect(stdout).toMatch(/^# fail 0$/m)
    })

    it.each(PACKAGES.flatMap((name) => Object.keys(manifestOf(name).bin ?? {})))(
      "runs %s",
      async (program) => {
        const { stdout } = await project.run(project.installed(".bin", program), "--help")
        expect(stdout).toContain(`Usage: ${program}`)
      },
    )
  })

  describe("an app in strict pnpm, which installs only what a README says", () => {
    it.concurrent.for(LIBRARIES)(
      "imports what the README of @sluice/%s imports",
      async (name, { onTestFinished }) => {
        const readme = readFileSync(new URL(`../../packages/${name}/README.md`, import.meta.url), "utf8")
        const commands = [...readme.matchAll(/npm install ([^\n`#]+)/g)].map(([, words = ""]) => words)
        const wanted = commands
          .flatMap((words) => words.trim().split(/ +/))
          .filter((word) => !word.startsWith("--"))
        expect(wanted).toContain(`@sluice/${name}`)
        const imported = [...readme.matchAll(/^import (?!type )[^"]*"([^".][^"]*)"/gm)].map(
          ([, module]) => module,
        )
        // A README may import only another entry point, such as @sluice/fetch/hono.
        expect(imported.some((module) => `${module}/`.startsWith(`@sluice/${name}/`))).toBe(true)

        const project = new Project(NODE_24)
        onTestFinished(() => project.remove())
        project.write(".npmrc", `${project.read(".npmrc")}${STRICT}@sluice:registry=${registry.url}\n`)
        const [command, ...args] = pnpm()
        const { stdout } = await project.run(command, ...args, "add", ...new Set(wanted))
        // pnpm only warns about missing peers, so check its output.
        expect(stdout).not.toContain("peer")
        const lines = [...new Set(imported)].map((module) => `await import(${JSON.stringify(module)})\n`)
        project.write("program.mjs", `${lines.join("")}process.exit()\n`)
        expect(await project.run("node", "program.mjs")).toMatchObject({ stdout: "", stderr: "" })
      },
    )
  })
})
