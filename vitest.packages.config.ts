import { availableParallelism } from "node:os"
import { defineConfig, type ViteUserConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Starts the slowest checks first. Vitest would start them last in a new clone, because their files are small. */
class SlowFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isSlow = ({ moduleId }: TestSpecification): boolean =>
      /\/(publish|node-\d+|lowest|typescript)\.check\.ts$/.test(moduleId)
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))]
  }
}

// `pnpm packages`. Separate from the tests, because it installs from the npm registry, as users do.
const config: ViteUserConfig = defineConfig({
  test: {
    include: ["test/packages/*.check.ts"],
    globalSetup: ["test/servers/global-setup.ts", "test/packages/setup.ts"],
    // The checks mostly wait for npm and the disk, so a third worker for two cores has something to do.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    sequence: { sequencer: SlowFilesFirst },
    // Shows the current check, because a run takes minutes, and does not change the table of sizes.
    reporters: ["verbose"],
    disableConsoleIntercept: true,
    // Long enough to install packages on a busy machine.
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
})
export default config
