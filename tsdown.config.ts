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
  publint: { level: "warning", strict: true },
  // The files for `require` pass ES modules on, so the types of ES modules are right.
  attw: { profile: "esm-only", level: "error", ignoreRules: ["false-esm"] },
  outExtensions: () => ({ js: ".js", dts: ".d.ts" }),
  plugins: [requireOnOldNode()],
})
export default config

/**
 * Adds a file to each entry point for `require` in a Node that cannot require ES modules. A newer Node takes the ES
 * module by the condition "module-sync". The file passes that module on, because some tools do not know this condition.
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

function passOn(file: string): string {
  return `try {
  module.exports = require("./${file}")
} catch (error) {
  if (error.code !== "ERR_REQUIRE_ESM") throw error
  const message = \`Sluice needs Node 20.19 or a later 20.x, or Node 22.12 or later. This is Node \${process.versions.node}.\`
  throw Object.assign(new Error(message), { code: "SLUICE_NODE_TOO_OLD" })
}
`
}
