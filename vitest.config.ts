import { fileURLToPath } from "node:url"
import { defineConfig, type ViteUserConfig } from "vitest/config"
import type { Reporter } from "vitest/node"

const packages = fileURLToPath(new URL("./packages", import.meta.url))

/** No test is skipped silently: the name of each says what the implementation does not do, and why. */
const namesSkipped: Reporter = {
  onTestRunEnd(modules) {
    for (const module of modules) {
      for (const test of module.children.allTests("skipped")) console.log(` skipped: ${test.fullName}`)
    }
  },
}

const config: ViteUserConfig = defineConfig({
  resolve: {
    // Tests run on the sources, so that coverage counts them and no build is needed; test/packaging.test.ts alone
    // runs what is published.
    alias: [{ find: /^@sluice\/(core|express|fastify|koa)$/, replacement: `${packages}/$1/src/index.ts` }],
  },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "test/**/*.test.ts",
      "examples/**/*.test.ts",
      "bench/**/*.test.ts",
    ],
    // The default keeps one core back, which on a machine with two halves the speed.
    maxWorkers: "100%",
    reporters: ["default", namesSkipped],
    testTimeout: 15_000,
    hookTimeout: 15_000,
    coverage: {
      provider: "v8",
      include: ["packages/*/src/**/*.ts"],
      exclude: ["**/*.test.ts", "**/*.test-d.ts"],
      reporter: ["text", "text-summary"],
      thresholds: { lines: 98, functions: 98, statements: 98, branches: 98 },
    },
  },
})
export default config
