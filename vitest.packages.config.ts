import { defineConfig, type ViteUserConfig } from "vitest/config"

// `pnpm packages`. Separate from the tests, because it installs from the npm registry, as users do.
const config: ViteUserConfig = defineConfig({
  test: {
    include: ["test/packages/*.check.ts"],
    globalSetup: ["test/servers/global-setup.ts", "test/packages/setup.ts"],
    // The checks mostly wait for npm and the disk.
    maxWorkers: "100%",
    // Shows the current check, because a run takes minutes, and does not change the table of sizes.
    reporters: ["verbose"],
    disableConsoleIntercept: true,
    // Long enough to install packages on a busy machine.
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
})
export default config
