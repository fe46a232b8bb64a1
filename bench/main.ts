// `bench`: what it costs, beside the peers; with --behaviour, who does what is wanted. Both read the rest of the command line.

const BEHAVIOUR = "--behaviour"
const isBehaviour = process.argv.includes(BEHAVIOUR)
process.argv = process.argv.filter((argument) => argument !== BEHAVIOUR)
await (isBehaviour ? import("./behaviour.ts") : import("./overview.ts"))

export {}
