// `bench`: what it costs, beside the peers; with --behaviour, who does what is wanted. Both read the rest of the command line.

import { HELP } from "./help.ts"

/** In both spellings of the word. */
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
