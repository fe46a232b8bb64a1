// Runs `bench`, which compares costs with the peers, or the drills with --behaviour. Each of the two programs reads
// the other options.

import { HELP } from "./help.ts"

/** The option in British and American spelling. */
const BEHAVIOUR = ["--behaviour", "--behavior"]
const args = process.argv.slice(2)
if (args.includes("--help") || args.includes("-h")) {
  console.log(HELP)
} else {
  process.argv = process.argv.filter((argument) => !BEHAVIOUR.includes(argument))
  await (args.some((argument) => BEHAVIOUR.includes(argument))
    ? import("./behaviour.ts")
    : import("./overview.ts"))
}
