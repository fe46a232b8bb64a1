import { readFileSync } from "node:fs"
import * as publint from "publint"
import * as publintUtils from "publint/utils"
import { defineConfig, type UserConfig } from "tsdown"

// The build of every package: ESM only, declarations by isolatedDeclarations, and two package linters (publint, attw).
const config: UserConfig = defineConfig({
  entry: ["src/index.ts"],
  format: "esm",
  platform: "node",
  target: "node20.19",
  dts: { oxc: true },
  sourcemap: false,
  // Docstrings are only in the declarations. Keep the comments that bundlers and licenses need.
  outputOptions: { comments: { legal: true, annotation: true, jsdoc: false } },
  // Dependencies stay imports. Bundling one is an error unless the package lists it.
  deps: { onlyBundle: [] },
  // The files for `require` pass ES modules on, so the types of ES modules are right.
  publint: { level: "warning", strict: true, module: [{ ...publint, publint: lint }, publintUtils] },
  attw: { profile: "strict", level: "error", ignoreRules: ["false-esm", "false-export-default"] },
  outExtensions: () => ({ js: ".js", dts: ".d.ts" }),
  plugins: [requireOnOldNode()],
})
export default config

/**
 * Adds a file to each entry point for `require` in a Node that cannot require ES modules. A newer Node takes the ES
 * module by the condition "module-sync". The file passes that module on, because some tools do not know this condition.
 * If that fails, the error names the cause: the version of Node, or a tool such as Jest, which parses files by itself.
 */
function requireOnOldNode(): NonNullable<UserConfig["plugins"]> {
  return {
    name: "require-on-old-node",
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) {
        // A program is not required.
        if (chunk.type !== "chunk" || !chunk.isEntry || chunk.name === "main") continue
        if (!chunk.fileName.endsWith(".js")) continue
        this.emitFile({ type: "asset", fileName: `${chunk.name}.cjs`, source: passOn(chunk.fileName) })
      }
    },
  }
}

/**
 * Adds `bundled.cdx.json`, a list of the packages whose code is part of the build (CycloneDX 1.6). They are not among
 * the dependencies, so scanners would not see them. `more` are paths of modules that the bundler does not know.
 */
export function billOfMaterials(more: readonly string[] = []): NonNullable<UserConfig["plugins"]> {
  return {
    name: "bill-of-materials",
    generateBundle(_options, bundle) {
      const chunks = Object.values(bundle).filter((chunk) => chunk.type === "chunk")
      const packages = bundledIn([...more, ...chunks.flatMap(({ moduleIds }) => moduleIds)])
      if (packages.size === 0) return
      const components = [...packages].sort().map(([name, folder]) => {
        const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"))
        const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`
        return { type: "library", name, version, purl, licenses: [{ license: { id: license } }] }
      })
      const bill = { bomFormat: "CycloneDX", specVersion: "1.6", version: 1, components }
      this.emitFile({ type: "asset", fileName: "bundled.cdx.json", source: `${JSON.stringify(bill)}\n` })
    },
  }
}

/** Returns the packages that these modules are part of, as a map from name to folder. */
export function bundledIn(paths: readonly string[]): ReadonlyMap<string, string> {
  const found = paths.flatMap((path) => {
    const [folder, name] = /.*\/node_modules\/(@[^/]+\/[^/]+|[^/]+)/.exec(path) ?? []
    return folder === undefined ? [] : [[name as string, folder] as const]
  })
  return new Map(found)
}

/** Checks a package, except that the types for `require` are those of CommonJS. */
async function lint(options?: publint.Options): Promise<publint.Result> {
  const { messages, ...result } = await publint.publint(options)
  return { ...result, messages: messages.filter(({ code }) => code !== "EXPORTS_TYPES_INVALID_FORMAT") }
}

function passOn(file: string): string {
  return `try {
  module.exports = require("./${file}")
} catch (cause) {
  if (cause.code !== "ERR_REQUIRE_ESM" && cause.name !== "SyntaxError") throw cause
  const [major, minor] = process.versions.node.split(".").map(Number)
  const isOld = major === 20 ? minor < 19 : major === 22 ? minor < 12 : major < 22
  const message = isOld
    ? \`Sluice needs Node 20.19 or a later 20.x, or Node 22.12 or later. This is Node \${process.versions.node}.\`
    : "Cannot load the ES modules of Sluice with require(). In Jest, transform @sluice, too. In Node, remove --no-experimental-require-module."
  throw Object.assign(new Error(message, { cause }), { code: isOld ? "SLUICE_NODE_TOO_OLD" : "SLUICE_CANNOT_REQUIRE" })
}
`
}
