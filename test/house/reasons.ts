/** A function with more lines of code needs a reason. */
export const LONG = 60
/** A class with more ancestors needs a reason. */
export const DEEP = 2
/** A file with more imports needs a reason. */
export const MANY = 20

const SUITE =
  "It is a list of behaviors, each with its title and its steps, and with helpers that only this list uses."
const CALLS =
  "It is a table with an entry for each call of the service. Each entry reads its message, acts and answers."
const COMPILES =
  "It reads the rules once and returns closures over what it has read, so that a request computes nothing twice."

/** Why the places that `pnpm counts` lists are right as they are. A file that moves to another folder keeps its reason. */
const REASONS: Readonly<Record<string, string>> = {
  "rule-source-contract.ts ruleSourceContract": SUITE,
  "registry-contract.ts registryContract": SUITE,
  "store-expiry-contract.ts storeExpiryContract": SUITE,
  "penalizing.ts penalizing": SUITE,
  "returning.ts returning": SUITE,
  "counting.ts counting": SUITE,
  "together.ts together": SUITE,
  "refusing.ts refusing": SUITE,
  "keys.ts keys": SUITE,
  "http-door.ts createHttpDoor":
    "It creates the parts of one server and connects them. Each part has its own file.",
  "grpc-door.ts createGrpcDoor":
    "It creates the nine parts of one server and connects them. Each part has its own file.",
  "running.ts start":
    "It opens the parts of the program in order and closes them in reverse, so the order has to be readable in one place.",
  "metrics.ts createMetrics":
    "Half of it declares instruments with name, description and unit, and the rest is one line for each event.",
  "memory-registry.ts memoryRegistry":
    "Each method is short. They share the map of rules and the listeners, which a class would have as private members.",
  "clients.ts clients": CALLS,
  "register.ts registering": CALLS,
  "compiled-rule.ts compileRule": COMPILES,
  "rejection.ts compileRejection": COMPILES,
  "members.ts compileMembers": COMPILES,
  "key-hash.ts keyHasher":
    "The round of the hash is written out twice, because a function for it would pass its four words through memory.",
  "program.ts createProgram":
    "It declares the options and help texts of each command of the table, and contains no logic.",
  "suggest-program.ts addSuggestCommand":
    "It declares the options and help texts of one command, and contains no logic.",
  "segment.ts segmentReader":
    "Its two directions of reading share the literals and the positions found so far, and fill them without copying.",
  "cloudfront.ts cloudfrontReader":
    "Reading a line needs the columns that an earlier line has named, so both are closures over them.",
  "reorder.ts reorder":
    "Each method is short. They share the buckets, which a class would have as private members.",
  "table.ts openTable":
    "Its calls share the client, the deadline and the key of the table, which the first of them learns.",
  "file.ts fileRules":
    "Its loads, listings and watches share one read of the file and one view of what has changed.",
  "json-text.ts withExactIds": "It is a parser: its functions share the text and the place reached in it.",
  "registration.ts registerLimiter":
    "Each hook of a registration reads the limits and symbols of that registration, so the hooks are closures over them.",
  "attempts.ts attempts":
    "It is one loop over the attempts of a call. Whether to try again depends on all that the earlier steps have found.",

  "refusal-error.ts RefusalError":
    "Error handlers that know the error of limiter.enforce() must recognize this one too, and both are Sluice errors.",

  "request-limiter.ts":
    "It implements the interface Limiter, which has all calls of users, and each call leads to a part with its own file.",
  "parse-options.ts":
    "It is the one place where all options are checked, and their types and defaults belong to the rooms that use them.",
  "compiled-rule.ts": "It is the one place where fields, matching, limits and counters of a rule meet.",
  "scripts.ts": "It joins the Lua files to scripts, and each Lua file is an import.",
  "decision-service.ts":
    "It is the root of the service: it creates the calls and both servers, and connects them.",
}

/** The keys of all reasons, see {@link keyOf}. */
export const REASONED: readonly string[] = Object.keys(REASONS)

/** Returns a place without its folders. */
export function keyOf(place: string): string {
  return place.replace(/^.*\//, "")
}

/** Returns why a place is right as it is; undefined if it is not on a list. */
export function reasonOf(place: string): string | undefined {
  return REASONS[keyOf(place)]
}
