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

/** Why the places that `pnpm counts` lists are right as they are. */
export const REASONS: Readonly<Record<string, string>> = {
  "packages/contracts/src/rule-source-contract.ts ruleSourceContract": SUITE,
  "packages/contracts/src/registry-contract.ts registryContract": SUITE,
  "packages/contracts/src/store-expiry-contract.ts storeExpiryContract": SUITE,
  "packages/contracts/src/store/penalizing.ts penalizing": SUITE,
  "packages/contracts/src/store/returning.ts returning": SUITE,
  "packages/contracts/src/store/counting.ts counting": SUITE,
  "packages/contracts/src/store/together.ts together": SUITE,
  "packages/contracts/src/store/refusing.ts refusing": SUITE,
  "packages/contracts/src/store/keys.ts keys": SUITE,
  "packages/service/src/http/http-door.ts createHttpDoor":
    "Its hooks, parser and handlers share the arrivals, connections and places in flight of one server, which end with it.",
  "packages/service/src/grpc/grpc-door.ts createGrpcDoor":
    "It creates the nine parts of one server and connects them. Each part has a file of its own.",
  "packages/service/src/program/running.ts start":
    "It opens the parts of the program in order and closes them in reverse, so the order has to be readable in one place.",
  "packages/service/src/program/metrics.ts createMetrics":
    "Half of it declares instruments with name, description and unit, and the rest is one line for each event.",
  "packages/service/src/registering/memory-registry.ts memoryRegistry":
    "Each method is short. They share the map of rules and the listeners, which a class would have as private members.",
  "packages/service/src/contract/clients.ts clients": CALLS,
  "packages/service/src/contract/register.ts registering": CALLS,
  "packages/core/src/limiter/rule-set/compiled-rule.ts compileRule": COMPILES,
  "packages/core/src/http/rejection.ts compileRejection": COMPILES,
  "packages/core/src/http/headers/members.ts compileMembers": COMPILES,
  "packages/core/src/limiter/parts.ts createParts":
    "It creates the parts of a limiter and says for each of their failures which warning and event it becomes.",
  "packages/core/src/stores/memory/key-hash.ts keyHasher":
    "The round of the hash is written out twice, because a function for it would pass its four words through memory.",
  "packages/cli/src/program.ts createProgram":
    "It declares the options and help texts of each command of the table, and has no logic of its own.",
  "packages/cli/src/suggest-program.ts addSuggestCommand":
    "It declares the options and help texts of one command, and has no logic of its own.",
  "packages/logs/src/reading/formats/segment.ts segmentReader":
    "Its two directions of reading share the literals and the positions found so far, and fill them without copying.",
  "packages/logs/src/reading/formats/cloudfront.ts cloudfrontReader":
    "Reading a line needs the columns that an earlier line has named, so both are closures over them.",
  "packages/logs/src/reading/reorder.ts reorder":
    "Each method is short. They share the buckets, which a class would have as private members.",
  "packages/rules/src/sources/file.ts fileRules":
    "Its loads, listings and watches share one read of the file and one view of what has changed.",
  "packages/rules/src/text/json-text.ts withExactIds":
    "It is a parser: its functions share the text and the place reached in it.",
  "packages/fastify/src/registration.ts registerLimiter":
    "Each hook of a registration reads the limits and symbols of that registration, so the hooks are closures over them.",
  "packages/client/src/attempts.ts attempts":
    "It is one loop over the attempts of a call. Whether to try again depends on all that the earlier steps have found.",

  "packages/core/src/http/refusal-error.ts RefusalError":
    "Error handlers that know the error of limiter.enforce() must recognize this one too, and both are Sluice errors.",

  "packages/core/src/limiter/request-limiter.ts":
    "It implements the interface Limiter, which has all calls of users, and each call leads to a part with a file of its own.",
  "packages/core/src/limiter/options/parse-options.ts":
    "It is the one place where all options are checked, and their types and defaults belong to the rooms that use them.",
  "packages/core/src/limiter/rule-set/compiled-rule.ts":
    "It is the one place where fields, matching, limits and counters of a rule meet.",
  "packages/redis/src/scripts.ts": "It joins the Lua files to scripts, and each Lua file is an import.",
  "packages/service/src/decision-service.ts":
    "It is the root of the service: it creates the calls and both servers, and connects them.",
  "packages/service/src/grpc/grpc-door.ts":
    "It connects the parts of one server, each of which has a file of its own.",
  "packages/service/src/http/http-door.ts":
    "It connects the parts of one server, each of which has a file of its own.",
}
