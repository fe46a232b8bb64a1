import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ADAPTERS, frameworksOf, LIBRARIES, manifestOf, PACKAGES } from "./manifests.ts"
import { NODE_24 } from "./nodes.ts"
import { programOf } from "./program.ts"
import { MODULE_SYSTEMS, Project } from "./project.ts"
import { blocksOf } from "./quick-start.ts"
import { publish, publishAll, type Registry, startRegistry } from "./registry.ts"
import { versionOf } from "./versions.ts"

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

describe("an empty project, which installs every package by its name from a registry", () => {
  beforeAll(async () => {
    await publishAll(project, registry)
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

  it.each(PACKAGES.flatMap((name) => Object.keys(manifestOf(name).bin ?? {})))("runs %s", async (program) => {
    const { stdout } = await project.run(project.installed(".bin", program), "--help")
    expect(stdout).toContain(`Usage: ${program}`)
  })
})
