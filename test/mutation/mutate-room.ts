import { availableParallelism } from "node:os"
import { Stryker } from "@stryker-mutator/core"
import { ROOMS } from "./rooms.ts"

/**
 * Mutates a room of the core, one change at a time, and runs its tests on each. Prints every mutant that no test noticed and the
 * score of each file; reports/mutation has the same as a page. Yields whether none was left.
 *
 * `only` are files of the room, or lines of them, as in "algorithms/share.ts:20-40"; all of it where there are none.
 */
export async function mutateRoom(name: string, only: readonly string[]): Promise<boolean> {
  const room = ROOMS[name]
  if (room === undefined) throw new RangeError(`no room ${name}: there are ${Object.keys(ROOMS).join(", ")}`)
  process.env.MUTATION_ROOM = name
  const results = await new Stryker({
    mutate: only.length === 0 ? [...room.mutate] : only.map((path) => `packages/core/src/${path}`),
    testRunner: "vitest",
    plugins: [import.meta.resolve("@stryker-mutator/vitest-runner")],
    vitest: { configFile: "test/mutation/vitest.config.ts", related: false },
    coverageAnalysis: "perTest",
    concurrency: availableParallelism(),
    // On a machine that is busy with something else, too: time that is waited for a mutant that hangs is the price.
    timeoutMS: 10_000,
    timeoutFactor: 2,
    dryRunTimeoutMinutes: 20,
    thresholds: { high: 100, low: 95, break: 100 },
    tempDirName: ".mutation",
    cleanTempDir: "always",
    ignorePatterns: ["/bench", "/docs", "/examples", "/reports", "dist", ".turbo", "coverage"],
    disableTypeChecks: false,
    reporters: ["clear-text", "html", "json", "progress-append-only"],
    clearTextReporter: { allowColor: false, allowEmojis: false, logTests: false, reportTests: false },
    htmlReporter: { fileName: `reports/mutation/${name}.html` },
    jsonReporter: { fileName: `reports/mutation/${name}.json` },
    allowConsoleColors: false,
  }).runMutationTest()
  return results.every(({ status }) => status !== "Survived" && status !== "NoCoverage")
}
