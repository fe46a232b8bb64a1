import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { missingBeforePublishing } from "../../release/missing.ts"

let root: string

/** Writes a file into the repository to publish. */
function write(path: string, content: unknown): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), typeof content === "string" ? content : JSON.stringify(content))
}

const manifestOf = (name: string) => ({
  name: `@sluice/${name}`,
  repository: { type: "git", url: "git+https://git.sluice.dev/sluice.git", directory: `packages/${name}` },
  homepage: "https://sluice.dev",
  bugs: { url: "https://git.sluice.dev/sluice/issues" },
})

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "sluice-release-"))
  write(".changeset/config.json", {})
  write("README.md", "# Sluice\n")
  for (const name of ["core", "koa"]) write(`packages/${name}/package.json`, manifestOf(name))
})
afterEach(() => rmSync(root, { recursive: true }))

describe("missingBeforePublishing", () => {
  it("returns nothing if every address is set", () => {
    expect(missingBeforePublishing(root)).toEqual([])
  })

  it("accepts `bugs` as a string, as npm does", () => {
    write("packages/koa/package.json", { ...manifestOf("koa"), bugs: "https://git.sluice.dev/sluice/issues" })
    expect(missingBeforePublishing(root)).toEqual([])
  })

  it.each([
    ["no repository", { repository: undefined }, "repository"],
    [
      "a repository with the folder of another package",
      { repository: manifestOf("core").repository },
      "repository",
    ],
    [
      "a repository that is not a URL",
      { repository: { url: "sluice", directory: "packages/koa" } },
      "repository",
    ],
    ["an example as homepage", { homepage: "https://example.com" }, "homepage"],
    ["an unencrypted homepage", { homepage: "http://sluice.dev" }, "homepage"],
    ["an email address alone for bugs", { bugs: { email: "bugs@sluice.dev" } }, "bugs"],
  ])("names the address and the package if the package has %s", (_title, members, address) => {
    write("packages/koa/package.json", { ...manifestOf("koa"), ...members })
    expect(missingBeforePublishing(root)).toEqual([`${address}: set it in the package.json of koa`])
  })

  it.each([
    ["a README that says it is not published", "README.md", "Sluice is not on npm yet."],
    ["changes without a version", ".changeset/brave-cats-run.md", "---\n---\n"],
  ])("names the file if the repository contains %s", (_title, path, text) => {
    write(path, text)
    const [line = "", ...others] = missingBeforePublishing(root)
    expect(line).toContain(path.split("/")[0])
    expect(others).toEqual([])
  })
})

it("missingBeforePublishing names the files whose links contain the placeholder", () => {
  write("packages/core/README.md", "The guide: <https://sluice.dev/start/express>\n")
  write("packages/koa/README.md", "The guide: <https://sluice.example/start/koa>\n")
  write(".github/ISSUE_TEMPLATE/config.yml", "url: https://sluice.example/start/questions\n")
  expect(missingBeforePublishing(root)).toEqual([
    "links: replace https://sluice.example/ with the homepage in packages/koa/README.md, .github/ISSUE_TEMPLATE/config.yml",
  ])
})

describe("release/main.ts", () => {
  const main = fileURLToPath(new URL("../../release/main.ts", import.meta.url))

  it("prints a command that sets the addresses in every package", () => {
    for (const name of ["core", "koa"]) write(`packages/${name}/package.json`, { name: `@sluice/${name}` })
    const [command = ""] = /^ +for p .*$/m.exec(readFileSync(main, "utf8")) ?? []
    const given = command
      .replaceAll("git+URL", "git+https://sluice.dev/sluice")
      .replaceAll("URL", "https://sluice.dev")
    execFileSync("sh", ["-c", given], { cwd: root })
    expect(missingBeforePublishing(root)).toEqual([])
  })
})
