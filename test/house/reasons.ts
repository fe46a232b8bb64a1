/** A function with more lines of code than this needs a reason. */
export const LONG = 60
/** A class with more ancestors than this needs a reason. */
export const DEEP = 2
/** A file with more imports than this needs a reason. */
export const MANY = 20

const SUITE =
  "The function is a list of behaviors, each with its title and its steps, and with helpers that only this list uses."
const CALLS =
  "The function is a table with an entry for each call of the service. Each entry reads its message, acts on it and responds."
const COMPILES =
  "The function reads the rules once and returns closures over the results, so that no request computes them again."

/**
 * The reasons why the places that `pnpm counts` lists need no change. A file that moves to another folder keeps its
 * reason.
 */
const REASONS: Readonly<Record<string, string>> = {
  "rule-source-contract.ts ruleSourceContract": SUITE,
  "registry-contract.ts registryContract": SUITE,
  "store-expiry-contract.ts storeExpiryContract": SUITE,
  "penalizing.ts penalizing": SUITE,
  "holding.ts holding": SUITE,
  "returning.ts returning": SUITE,
  "counting.ts counting": SUITE,
  "together.ts together": SUITE,
  "refusing.ts refusing": SUITE,
  "keys.ts keys": SUITE,
  "http-door.ts createHttpDoor":
    "The function creates the parts of one server and connects them. Each part has its own file.",
  "grpc-door.ts createGrpcDoor":
    "The function creates the nine parts of one server and connects them. Each part has its own file.",
  "running.ts start":
    "The function opens the parts of the program in order and closes them in reverse, so the order has to be readable in one place.",
  "metrics.ts createMetrics":
    "Half of the function declares instruments with name, description and unit. The rest is one line for each event.",
  "memory-registry.ts memoryRegistry":
    "Each method is short. The methods share the map of rules and the listeners, which a class would have as private members.",
  "clients.ts clients": CALLS,
  "register.ts registering": CALLS,
  "compiled-rule.ts compileRule": COMPILES,
  "rejection.ts compileRejection": COMPILES,
  "members.ts compileMembers": COMPILES,
  "key-hash.ts keyHasher":
    "The round of the hash is written out twice, because a separate function would pass the four words through memory.",
  "program.ts createProgram":
    "The function declares the options and help texts of each command of the table, and contains no logic.",
  "suggest-program.ts addSuggestCommand":
    "The function declares the options and help texts of one command, and contains no logic.",
  "segment.ts segmentReader":
    "Both directions of reading share the literals and the positions found so far, and fill them without copying.",
  "cloudfront.ts cloudfrontReader":
    "A line can be read only with the columns that an earlier line has named, so both readers are closures over these columns.",
  "reorder.ts reorder":
    "Each method is short. The methods share the buckets, which a class would have as private members.",
  "table.ts openTable":
    "The calls share the client, the timeout and the table's key, which the first call reads.",
  "file.ts fileRules":
    "Loads, listings and watches share one read of the file and one record of the changes.",
  "json-text.ts withExactIds":
    "The function is a parser, whose inner functions share the text and the current position.",
  "registration.ts registerLimiter":
    "Each hook of a registration reads the limits and symbols of that registration, so the hooks are closures over them.",
  "attempts.ts attempts":
    "The function is one loop over the attempts of a call. The decision to retry depends on the results of all earlier steps.",

  "refusal-error.ts RefusalError":
    "Error handlers that recognize the error of limiter.enforce() must also recognize this one. Both errors are Sluice errors.",

  "request-limiter.ts":
    "The file implements the interface Limiter, which contains all calls of users. Each call is implemented by a part in its own file.",
  "parse-options.ts":
    "The file is the only place that checks all options. The types and defaults of options belong to the rooms that use them.",
  "compiled-rule.ts":
    "The file is the only place that combines the fields, matching, limits and counters of a rule.",
  "scripts.ts": "The file joins the Lua files to scripts, and each Lua file is an import.",
  "decision-service.ts":
    "The file is the root of the service. The file creates the calls and both servers, and connects them.",
}

/** The keys of all reasons, see {@link keyOf}. */
export const REASONED: readonly string[] = Object.keys(REASONS)

/** Returns the name of a place without its folders. */
export function keyOf(place: string): string {
  return place.replace(/^.*\//, "")
}

/** Returns the reason why a place needs no change, or undefined if the place is not on a list. */
export function reasonOf(place: string): string | undefined {
  return REASONS[keyOf(place)]
}
