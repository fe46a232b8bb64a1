import { defineConfig, type ViteUserConfig } from "vitest/config"

// `pnpm packages`: apart from the tests, since it installs from the npm registry, as users do.
const config: ViteUserConfig = defineConfig({
  test: {
    include: ["test/packages/*.check.ts"],
    globalSetup: ["test/servers/global-setup.ts", "test/packages/setup.ts"],
    // Most of it waits for npm and the disk.
    maxWorkers: "100%",
    // Says which check is at work, in a run of minutes, and lets the table of sizes stand as it is.
    reporters: ["verbose"],
    disableConsoleIntercept: true,
    // Installs on a machine that does other things as well.
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
})
export default config
