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
  attw: { profile: "esm-only", level: "error" },
  outExtensions: () => ({ js: ".js", dts: ".d.ts" }),
})
export default config
