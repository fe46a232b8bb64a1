import { fileURLToPath } from "node:url"
import { type Reporter, startVitest, type TestCase, type TestRunEndReason, type Vitest } from "vitest/node"
import type { Mutant } from "./mutant.ts"
import { MUTANTS } from "./mutants.ts"

const ROOT = fileURLToPath(new URL("../../..", import.meta.url))

/**
 * Runs all suites without a mutant. Then runs the suite of each mutant, and changes the script before it is sent to
 * Redis. Prints the test that noticed each mutant, and finally the mutants that no test noticed. `only` contains
 * names of scripts. If `only` is empty, all scripts are mutated. Returns whether every mutant was noticed.
 */
export async function mutateScripts(only: readonly string[]): Promise<boolean> {
  const mutants = MUTANTS.filter(({ script }) => only.length === 0 || only.includes(script))
  if (mutants.length === 0) throw new RangeError(`no mutants of ${only.join(", ")}`)
  const red = await firstRed([...new Set(mutants.map(({ suite }) => suite))])
  if (red !== undefined) throw new Error(`red without any mutant: ${red}`)
  const unnoticed: Mutant[] = []
  for (const [i, mutant] of mutants.entries()) {
    const noticedBy = await firstRed([mutant.suite], mutant)
    console.log(`${i + 1}/${mutants.length} ${textOf(mutant)}\n  ${noticedBy ?? "NOT NOTICED"}`)
    if (noticedBy === undefined) unnoticed.push(mutant)
  }
  console.log(
    `\n${mutants.length - unnoticed.length} of ${mutants.length} mutants of the scripts were noticed`,
  )
  for (const mutant of unnoticed) console.log(`not by ${mutant.suite}: ${textOf(mutant)}`)
  return unnoticed.length === 0
}

/** Returns the first test that fails or hangs, or undefined if all tests pass. */
async function firstRed(suites: readonly string[], mutant?: Mutant): Promise<string | undefined> {
  const ended: Ended = {}
  const vitest = await startVitest(
    "test",
    [...suites],
    {
      root: ROOT,
      watch: false,
      bail: 1,
      reporters: [endOf(ended)],
      setupFiles: [fileURLToPath(new URL("../without-shrinking.ts", import.meta.url))],
    },
    { plugins: mutant === undefined ? [] : [mutating(mutant)] },
  )
  try {
    return redIn(vitest) ?? (ended.reason === "passed" ? undefined : "a test that ended the run")
  } finally {
    await vitest.close()
  }
}

/** How a test run ended. */
interface Ended {
  reason?: TestRunEndReason
}

/**
 * Records the reason why a run ended. The first failure ends a run, sometimes before Vitest reports the failed test.
 */
const endOf = (ended: Ended): Reporter => ({
  onTestRunEnd(_modules, _errors, reason) {
    ended.reason = reason
  },
})

function redIn(vitest: Vitest): string | undefined {
  const modules = vitest.state.getTestModules()
  if (modules.length === 0) throw new Error("no suite was found")
  for (const module of modules) {
    const failed = module.children.allTests("failed").next().value as TestCase | undefined
    if (failed !== undefined) return failed.fullName
    const [error] = module.errors()
    if (error !== undefined) return `${module.relativeModuleId}: ${error.message}`
  }
  return vitest.state.getUnhandledErrors().length > 0 ? "an error that no test has caught" : undefined
}

/** Changes the script before it is imported as text. */
function mutating({ script, text, replacement }: Mutant) {
  return {
    name: "mutant",
    enforce: "pre" as const,
    transform: (code: string, id: string) =>
      id.endsWith(`/scripts/${script}.lua`) ? code.replace(text, () => replacement) : undefined,
  }
}

function textOf({ script, text, replacement }: Mutant): string {
  return `${script}.lua: ${JSON.stringify(text)} -> ${JSON.stringify(replacement)}`
}
