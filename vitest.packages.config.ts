import { availableParallelism } from "node:os"
import { defineConfig, type ViteUserConfig } from "vitest/config"

// `pnpm packages`. Separate from the tests, because it installs from the npm registry, as users do.
const config: ViteUserConfig = defineConfig({
  test: {
    include: ["test/packages/*.check.ts"],
    globalSetup: ["test/servers/global-setup.ts", "test/packages/setup.ts"],
    // The checks mostly wait for npm and the disk, so a third worker for two cores has something to do.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // Shows the current check, because a run takes minutes, and does not change the table of sizes.
    reporters: ["verbose"],
    disableConsoleIntercept: true,
    // Long enough to install packages on a busy machine.
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
})
export default config
