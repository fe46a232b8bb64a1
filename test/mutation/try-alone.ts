import { availableParallelism } from "node:os"
import type { Mutant } from "@stryker-mutator/api/core"
import { Stryker } from "@stryker-mutator/core"

/**
 * Runs Stryker itself on some mutants of a room. Stryker loads every test again for each mutant, so the mutant also
 * affects code that runs once for several tests or in another process. Resolves with the mutants that no test
 * noticed. The page reports/mutation/ROOM.html shows these mutants in the source.
 */
export async function tryAlone(room: string, mutants: readonly Mutant[]): Promise<readonly Mutant[]> {
  process.env.MUTATION_ROOM = room
  const results = await new Stryker({
    mutate: [...new Set(mutants.map(rangeOf))],
    testRunner: "vitest",
    plugins: [import.meta.resolve("@stryker-mutator/vitest-runner")],
    vitest: { configFile: "test/mutation/vitest.config.ts", related: false },
    coverageAnalysis: "perTest",
    concurrency: availableParallelism(),
    ignoreStatic: true,
    // A mutant that hangs is ended after this time plus the usual time of its tests.
    timeoutMS: 5_000,
    timeoutFactor: 1.5,
    dryRunTimeoutMinutes: 20,
    tempDirName: ".mutation",
    cleanTempDir: "always",
    ignorePatterns: ["/bench", "/docs", "/examples", "/reports", "dist", ".turbo", "coverage"],
    disableTypeChecks: false,
    reporters: ["html", "progress-append-only"],
    htmlReporter: { fileName: `reports/mutation/${room}.html` },
    allowConsoleColors: false,
  }).runMutationTest()
  const left = results.filter(({ status }) => status === "Survived" || status === "NoCoverage")
  // Convert the position, because Stryker reports lines and columns from 1.
  const textOf = ({ fileName, location, mutatorName, replacement }: Left, from: 0 | 1): string =>
    [fileName, location.start.line - from, location.start.column - from, mutatorName, replacement].join(" ")
  const stillLeft = new Set(left.map((result) => textOf(result, 1)))
  return mutants.filter((mutant) => stillLeft.has(textOf(mutant, 0)))
}

type Left = Pick<Mutant, "fileName" | "location" | "mutatorName"> & {
  readonly replacement?: string | undefined
}

/** Stryker accepts positions with lines from 1 and columns from 0. */
function rangeOf({ fileName, location: { start, end } }: Mutant): string {
  return `${fileName}:${start.line + 1}:${start.column}-${end.line + 1}:${end.column}`
}
