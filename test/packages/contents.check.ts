import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, inject, it } from "vitest"
import { parse } from "yaml"
import { LIBRARIES, PACKAGES } from "./manifests.ts"

/** Packages whose code is bundled into a published package. docs/decisions gives the reasons. */
const BUILT_IN: Readonly<Record<string, readonly string[]>> = {
  core: ["content-type", "negotiator", "structured-headers", "valibot"],
  dashboard: ["uplot"],
  logs: ["uplot"],
}
/** The files with the licenses and the versions of the packages that are bundled into a package. */
const besideBundled = (name: string): string[] => [
  "dist/bundled.cdx.json",
  ...(BUILT_IN[name] ?? []).map((other) => `dist/${other}-MIT.txt`),
]
/** The contents of a tarball other than code, declarations, package.json, README and license. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  fetch: ["elysia/package.json", "hono/package.json", "sveltekit/package.json"],
  cli: ["bin/sluice.js"],
  dashboard: besideBundled("dashboard"),
  core: [
    "adapters/package.json",
    ...besideBundled("core"),
    ...readdirSync(new URL("../../docs/errors", import.meta.url)).map((file) => `errors/${file}`),
    ...[
      "kit/package.json",
      "replay/package.json",
      "rules/package.json",
      "stores/package.json",
      "testing/package.json",
    ],
  ],
  logs: besideBundled("logs"),
  rules: ["rules.schema.json"],
  service: ["bin/sluice-service.js"],
}

/** Returns the text of a file in a package's tarball. */
function textOf(name: string, path: string): string {
  const { file = "" } = inject("tarballs")[name] ?? {}
  return execFileSync("tar", ["-xzOf", file, `package/${path}`], { encoding: "utf8", maxBuffer: 2 ** 26 })
}

/** Returns the lockfile's versions of the packages that a package's build uses. */
function lockedFor(name: string): Readonly<Record<string, { readonly version: string }>> {
  const lockfile = readFileSync(new URL("../../pnpm-lock.yaml", import.meta.url), "utf8")
  return parse(lockfile).importers[`packages/${name}`].devDependencies
}

it("every package is packed", () => {
  expect(Object.keys(inject("tarballs")).sort()).toEqual(PACKAGES)
})

it("the core is packed into at most 190 kB", () => {
  expect(inject("tarballs").core?.bytes).toBeLessThanOrEqual(190_000)
})

it("the core keeps the names of functions, classes and methods, for stack traces", () => {
  const files = (inject("tarballs").core?.contents ?? []).filter((path) => path.endsWith(".js"))
  const names = files.flatMap((path) =>
    [...textOf("core", path).matchAll(/\b(?:function|class) (\w+)|^(?:async )?#(\w+)\(/gm)].map(
      ([, one, other]) => one ?? other,
    ),
  )
  expect(names.length).toBeGreaterThan(800)
  expect(names.filter((name) => name?.length === 1)).toEqual([])
})

describe.each(PACKAGES)("the tarball of @sluice/%s", (name) => {
  const { contents = [] } = inject("tarballs")[name] ?? {}

  it("contains the build, manifest, README, license and listed files, and nothing else", () => {
    const others = contents.filter(
      (path) =>
        !/^(dist\/[\w.-]+\.(c?js|d\.ts)|proto\/[\w./]+\.proto|package\.json|README\.md|LICENSE)$/.test(path),
    )
    expect(others.sort()).toEqual(BESIDE[name] ?? [])
    expect(textOf(name, "LICENSE")).toMatch(/^MIT License\n/)
    expect(contents.filter((path) => /\.test(-d)?\./.test(path))).toEqual([])
  })

  it("contains code and declarations, but no source maps or references to them", () => {
    const built = contents.filter((path) => path.startsWith("dist/"))
    expect(built.length).toBeGreaterThan(0)
    expect(built.filter((path) => !/(\.(c?js|d\.ts)|-MIT\.txt|\.cdx\.json)$/.test(path))).toEqual([])
    expect(built.filter((path) => textOf(name, path).includes("sourceMappingURL"))).toEqual([])
  })

  it("contains no import.meta, which does not exist in CommonJS, into which Jest and bundlers compile it", () => {
    const code = contents.filter((path) => /\.c?js$/.test(path))
    expect(code.filter((path) => textOf(name, path).includes("import.meta"))).toEqual([])
  })

  it("contains third-party code only where intended, each with its license", () => {
    const code = contents.filter((path) => path.endsWith(".js")).map((path) => textOf(name, path))
    // The bundler writes such a line above each module, and the core's build writes it at the top of a file.
    const modules = code.flatMap((text) => [
      ...text.matchAll(/^\/\/(?:#region .*\/node_modules\/| Bundled package: )(@[^/]+\/[^/\n]+|[^/\n]+)/gm),
    ])
    const others = [...new Set(modules.map(([, other]) => other))].sort()
    expect(others).toEqual(BUILT_IN[name] ?? [])
    for (const other of others)
      expect(textOf(name, `dist/${other}-MIT.txt`)).toMatch(
        /^\(?(The )?MIT License\)?( \(MIT\))?\n\nCopyright/,
      )
    expect(contents.filter((path) => path.endsWith("-MIT.txt"))).toHaveLength(others.length)
  })

  it("lists third-party code with the versions of the lockfile, for scanners", () => {
    const expected = (BUILT_IN[name] ?? []).map((other) => {
      const { version: locked } = lockedFor(name)[other] as { readonly version: string }
      // The lockfile adds the versions of peers: 1.5.0(typescript@6.0.3).
      const version = locked.replace(/\(.*/, "")
      const licenses = [{ license: { id: "MIT" } }]
      return { type: "library", name: other, version, purl: `pkg:npm/${other}@${version}`, licenses }
    })
    const isListed = contents.includes("dist/bundled.cdx.json")
    expect(isListed).toBe(expected.length > 0)
    if (!isListed) return
    expect(JSON.parse(textOf(name, "dist/bundled.cdx.json"))).toEqual({
      bomFormat: "CycloneDX",
      specVersion: "1.6",
      version: 1,
      components: expected,
    })
  })

  it("has a README with the install command and Node versions, and without relative links", () => {
    const readme = textOf(name, "README.md")
    expect(readme).toMatch(new RegExp(`^# @sluice/${name}\n`))
    expect(readme).toMatch(new RegExp(`^npm install (--save-dev )?@sluice/${name}`, "m"))
    expect(readme).toContain("Node 20.19 or a later 20.x, or 22.12 or later.")
    expect(readme.match(/\]\((?!https?:)[^)]*\)/g)).toBeNull()
  })

  it("declares its license and Node versions, and has no install scripts", () => {
    const manifest = JSON.parse(textOf(name, "package.json"))
    expect(manifest).toMatchObject({
      license: "MIT",
      type: "module",
      engines: { node: "^20.19.0 || >=22.12.0" },
    })
    expect(manifest.description).toMatch(/\w/)
    expect(manifest.keywords).toContain("rate-limit")
    const hooks = Object.keys(manifest.scripts ?? {}).filter((script) => /^(pre|post)?install$/.test(script))
    expect(hooks).toEqual([])
  })

  if (LIBRARIES.includes(name)) {
    it("maps each entry point to declarations first, then to one file for import and require", () => {
      const { exports } = JSON.parse(textOf(name, "package.json"))
      const entries = Object.entries<Record<string, string>>(exports).filter(
        ([path]) => !path.endsWith(".json"),
      )
      expect(entries.length).toBeGreaterThan(0)
      for (const [, conditions] of entries) {
        const { default: file = "" } = conditions
        // Only some tools, and Node versions that cannot require ES modules, load the file for `require`. For the
        // tools, this file re-exports the ES module.
        const require = file.replace(/\.js$/, ".cjs")
        expect(Object.entries(conditions)).toEqual([
          ["types", file.replace(/\.js$/, ".d.ts")],
          ["module-sync", file],
          ["require", require],
          ["default", file],
        ])
        for (const each of Object.values(conditions)) expect(contents).toContain(each.replace("./", ""))
      }
    })

    it("names the files of each entry point for tools that do not read exports", () => {
      const { exports, main, types } = JSON.parse(textOf(name, "package.json"))
      expect({ main, types }).toEqual({ main: exports["."].require, types: exports["."].types })
      for (const path of Object.keys(exports)) {
        const { require, types } = exports[path]
        if (path === "." || require === undefined) continue
        const folder = JSON.parse(textOf(name, `${path.slice(2)}/package.json`))
        expect(folder).toEqual({ main: `.${require}`, types: `.${types}` })
      }
    })

    it("lets bundlers remove unused code", () => {
      expect(JSON.parse(textOf(name, "package.json")).sideEffects).toBe(false)
    })
  }
})
