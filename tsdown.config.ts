import { defineConfig, type UserConfig } from "tsdown"

// One build for every package: ESM only, declarations by isolatedDeclarations, and the two package linters as part of it.
const config: UserConfig = defineConfig({
  entry: ["src/index.ts"],
  format: "esm",
  platform: "node",
  target: "node20.19",
  dts: { oxc: true },
  sourcemap: false,
  // Declarations have the docstrings. What bundlers and licenses need stays.
  outputOptions: { comments: { legal: true, annotation: true, jsdoc: false } },
  // What is not our own source stays an import: a bundled dependency is an error, where the package does not say that it is meant.
  deps: { onlyBundle: [] },
  publint: { level: "warning", strict: true },
  attw: { profile: "esm-only", level: "error" },
  outExtensions: () => ({ js: ".js", dts: ".d.ts" }),
})
export default config
