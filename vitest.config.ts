import { fileURLToPath } from "node:url"
import { defineConfig, type ViteUserConfig } from "vitest/config"

const packages = fileURLToPath(new URL("./packages", import.meta.url))

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
