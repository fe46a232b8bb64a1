import { execFileSync } from "node:child_process"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { ROOT } from "../docs/documents.ts"
import { manifestOf, PACKAGES } from "../packages/manifests.ts"

const CHANGESET = createRequire(import.meta.url).resolve("@changesets/cli/bin.js")

it.each(PACKAGES)(
  "@sluice/%s has the same version as all packages, also at the top of its CHANGELOG",
  (name) => {
    const { version } = manifestOf("core")
    expect(manifestOf(name).version).toBe(version)
    const changes = readFileSync(`${ROOT}packages/${name}/CHANGELOG.md`, "utf8")
    expect(changes).toMatch(new RegExp(`^# @sluice/${name}\n\n## ${version.replaceAll(".", "\\.")}\n`))
  },
)

it.each(PACKAGES)("@sluice/%s declares its dependencies as ranges, so that apps can update them", (name) => {
  const ranges = Object.values(manifestOf(name).dependencies ?? {})
  expect(ranges.filter((range) => !/^(\^|~|workspace:\^)/.test(range))).toEqual([])
})

describe("changeset version", () => {
  let root: string
  const git = (...args: string[]) => execFileSync("git", args, { cwd: root, stdio: "pipe" })

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "sluice-versions-"))
    cpSync(`${ROOT}.changeset/config.json`, join(root, ".changeset/config.json"))
    for (const file of ["package.json", "pnpm-workspace.yaml"]) cpSync(ROOT + file, join(root, file))
    const folders = [...PACKAGES.map((name) => `packages/${name}`), "bench", "examples", "test"]
    for (const folder of folders) {
      cpSync(`${ROOT}${folder}/package.json`, join(root, folder, "package.json"))
    }
    git("init", "--quiet", "--initial-branch=main")
    git("add", ".")
    git("-c", "user.name=test", "-c", "user.email=test", "commit", "--quiet", "--message=packages")
  })
  afterEach(() => rmSync(root, { recursive: true }))

  /** Returns the versions of all packages after a release that changes one package. */
  function versionsAfter(name: string, kind: string): string[] {
    writeFileSync(join(root, ".changeset/change.md"), `---\n"@sluice/${name}": ${kind}\n---\n\nA change.\n`)
    execFileSync(process.execPath, [CHANGESET, "version"], { cwd: root, stdio: "pipe" })
    return readdirSync(join(root, "packages")).map(
      (folder) => JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8")).version,
    )
  }

  // Without the repository's configuration, a package with a peer dependency on another package would become 1.0.0.
  it.each([
    ["core", "minor", 1],
    ["koa", "patch", 2],
  ] as const)(
    "gives every package the same next version if @sluice/%s has a %s change",
    (name, kind, part) => {
      const next = manifestOf("core").version.split(".").map(Number)
      next[part] = (next[part] ?? 0) + 1
      const expected = next.map((number, at) => (at > part ? 0 : number)).join(".")
      expect(new Set(versionsAfter(name, kind))).toEqual(new Set([expected]))
      expect(readFileSync(join(root, `packages/${name}/CHANGELOG.md`), "utf8")).toContain("A change.")
    },
  )
})
