import { COUNTERS } from "./counters.ts"
import type { Mutant } from "./mutant.ts"
import { TAKING } from "./taking.ts"

/** All mutants of the scripts. The list omits changes that affect only the speed. */
export const MUTANTS: readonly Mutant[] = Object.entries({ ...TAKING, ...COUNTERS }).flatMap(
  ([script, list]) =>
    list.map(([text, replacement, suite = "differential"]) => ({
      script,
      text,
      replacement,
      suite: `test/${suite.includes("/") ? suite : `redis/${suite}`}.test.ts`,
    })),
)
