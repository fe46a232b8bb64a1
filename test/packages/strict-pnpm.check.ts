import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { LIBRARIES } from "./manifests.ts"
import { NODE_24 } from "./nodes.ts"
import { Project } from "./project.ts"
import { publishAll, type Registry, startRegistry } from "./registry.ts"
import { pnpm } from "./tarballs.ts"

/**
 * A module finds only packages that its own package declares, and peer dependencies are not installed automatically.
 */
const STRICT = "node-linker=isolated\nhoist=false\npublic-hoist-pattern=\nauto-install-peers=false\n"

let registry: Registry
const projects: Project[] = []

function newProject(): Project {
  const project = new Project(NODE_24)
  projects.push(project)
  return project
}

beforeAll(async () => {
  registry = await startRegistry()
  await publishAll(newProject(), registry)
})
afterAll(async () => {
  await registry.stop()
  for (const project of projects) project.remove()
})

describe("an app in strict pnpm, which installs only what a README says", () => {
  it.concurrent.each(LIBRARIES)("imports what the README of @sluice/%s imports", async (name) => {
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

    const project = newProject()
    project.write(".npmrc", `${project.read(".npmrc")}${STRICT}@sluice:registry=${registry.url}\n`)
    const [command, ...args] = pnpm()
    const { stdout } = await project.run(command, ...args, "add", ...new Set(wanted))
    // pnpm only warns about missing peers, so check its output.
    expect(stdout).not.toContain("peer")
    const lines = [...new Set(imported)].map((module) => `await import(${JSON.stringify(module)})\n`)
    project.write("program.mjs", `${lines.join("")}process.exit()\n`)
    expect(await project.run("node", "program.mjs")).toMatchObject({ stdout: "", stderr: "" })
  })
})
