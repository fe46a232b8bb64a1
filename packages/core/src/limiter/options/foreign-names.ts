import type { Problem } from "../../ground/errors.ts"
import { NAMES_ELSEWHERE, RULE_MEMBERS } from "../../rules/parsing/rule-members.ts"
import { optionsShape } from "./options-shape.ts"

type Names = Readonly<Record<string, string>>

/** Names of rule members in other rate limiters, each with a hint that names the member in Sluice. */
const MEMBER_NAMES: Names = {
  ...Object.fromEntries(
    Object.entries(NAMES_ELSEWHERE).map(([name, here]) => [name, `use "${here}" instead`]),
  ),
  // Some limiters use seconds and others milliseconds, so a copied number could make a limit a thousand times too
  // lax.
  interval: 'use "window" instead, such as "1 minute"',
  period: 'use "window" instead, such as "1 minute", or "per", such as "month"',
  tokensPerInterval: 'use "limit" instead',
  rate: 'use "limit" and "window" instead, as in code',
  capacity: 'use "burst" of a "token-bucket" instead',
  path: 'use "match": { path } instead',
  methods: 'use "match": { methods } instead',
  duration: 'use "window" instead, in milliseconds or as a string such as "60 seconds"',
  keyGenerator: 'use "field" to choose what is counted by, and "fields" to read it',
  id: 'use "field" to choose what is counted by, and "fields" to read it',
  identifier: 'use "name" instead',
  keyPrefix: 'use "name" instead, together with the "service" of the limiter',
  groupId: 'use "group" of a Fastify route instead',
  message: 'use "rejection": { body } instead, or "rejectionMessage" to add a message',
  errorMessage: 'use "rejection": { body } instead, or "rejectionMessage" to add a message',
  statusCode: 'use "rejection": { status } instead',
  status: 'use "rejection": { status } instead',
  errorResponseBuilder: 'use "rejection": { body } instead, a function',
  // In koa-ratelimit, these two are functions of the request.
  whitelist: 'use "skip" for a function, or "allow" for a list of values',
  blacklist: 'use "deny" for a list of values, or "limit" for a function that returns 0 for these clients',
  whiteList: 'use "allow" instead',
  blackList: 'use "deny" instead',
  allowList: 'use "allow" instead, or "skip" for a function',
  isBlackListed:
    'use "limit" for a function that returns 0 for these clients, or "deny" for a list of values',
  ban: 'use "penalty" instead',
  blockDuration: 'use "penalty" instead',
  blockOnConsumed: 'use "penalty" instead',
  continueExceeding: 'use "countRejected" instead',
  execEvenly: 'use "algorithm": "leaky-bucket" instead',
  execEvenlyMinDelayMs: 'use "algorithm": "leaky-bucket" instead',
  minTime: 'use "algorithm": "leaky-bucket" with "burst": 1 instead',
  reservoir: 'use "limit" instead',
  reservoirRefreshInterval: 'use "window" instead, such as "1 minute"',
  intervalCap: 'use "limit" instead',
}

/** Option names of other rate limiters, each with a hint that names the option in Sluice. */
export const OPTION_NAMES: Names = {
  ...MEMBER_NAMES,
  handler: 'use "onRejected" instead',
  onExceeded: 'use "onRejected" instead',
  onLimited: 'use "onRejected" instead',
  retryAfter: 'use "onRejected" instead',
  throw: 'nothing is thrown; use "onRejected" to respond',
  onExceeding: 'use the event "decision" instead',
  onBanReach: 'use the event "decision" instead',
  isWhiteListed: 'use "skip" instead',
  skipSuccessfulRequests: 'use "refundWhen": (request, status) => status < 400',
  skipFailedRequests: 'use "refundWhen": (request, status) => status >= 400',
  requestWasSuccessful: 'use "refundWhen" instead',
  legacyHeaders: 'use "headers": "legacy" for true, and leave it out for false',
  standardHeaders: 'use "headers" instead',
  enableDraftSpec: 'use "headers": "triple" instead',
  addHeaders: 'use "headers" instead',
  addHeadersOnExceeding: 'use "headers" instead',
  disableHeader: 'use "headers": false instead',
  requestPropertyName: 'no counterpart: the property is always "rateLimit"',
  ipv6Subnet: 'use "ipv6Prefix" instead',
  validate: "no counterpart: leave it out",
  exponentialBackoff: 'no counterpart: "penalty" blocks for one time or a list of growing times',
  onLimitReached: 'use the event "first-refusal" instead',
  runActionAnyway: "no counterpart: requests on a list are not counted",
  disableHeaders: 'use "headers": false instead',
  tableName: "no counterpart: it belongs to a store of your own",
  dbName: "no counterpart: it belongs to a store of your own",
  storeType: "no counterpart: leave it out",
  useRedisPackage: "no counterpart: leave it out",
  useRedis3AndLowerPackage: "no counterpart: leave it out",
  rejectIfRedisNotReady: 'no counterpart: see "onStoreFailure"',
  customIncrTtlLuaScript: "no counterpart: leave it out",
  clearExpiredByTimeout: "no counterpart: leave it out",
  resetExpiryOnChange: "no counterpart: leave it out",
  trustProxy: 'use "trustedProxies" instead',
  global: 'leave out "limit" and "window" to limit only the routes that ask for it',
  passOnStoreError: 'use "onStoreFailure" instead',
  skipOnError: 'use "onStoreFailure" instead',
  insuranceLimiter: 'use "onStoreFailure" instead',
  timeoutMs: 'use "storeTimeoutMs" instead',
  driver: 'use "store" instead',
  db: 'use "store" instead',
  redis: 'use "store": redisStore({ client }) instead',
  client: 'use "store": redisStore({ client }) instead',
  limiters: 'use "rules" instead',
  failOpen: 'use "onStoreFailure" instead',
  storeClient: 'use "store": redisStore({ client }) instead',
  namespace: 'use "service" instead',
  nameSpace: 'use "service" instead',
  cache: 'use "maxKeys" of memoryStore() instead',
  inMemoryBlockOnConsumed: 'use "denyCacheMs" of redisStore() instead',
  inMemoryBlockDuration: 'use "denyCacheMs" of redisStore() instead',
  maxQueueSize: 'use "maxWaiting" of acquire() instead',
  highWater: 'use "maxWaiting" of acquire() instead',
}

/** Options of a limiter that are not also members of a rule. */
const LIMITER_OPTIONS: readonly string[] = Object.keys(optionsShape.entries).filter(
  (name) => !Object.hasOwn(RULE_MEMBERS, name),
)
const OF_ALL = "an option of the limiter for all its rules"

/** Hints for names that are used as members of a rule. Options of a limiter are not valid there. */
export const RULE_NAMES: Names = {
  ...Object.fromEntries(Object.entries(OPTION_NAMES).map(([name, here]) => [name, inRule(here)])),
  ...Object.fromEntries(LIMITER_OPTIONS.map((name) => [name, `it is ${OF_ALL}`])),
  ...MEMBER_NAMES,
}

function inRule(here: string): string {
  const [, name = ""] = /^use "(\w+)"/.exec(here) ?? []
  if (!LIMITER_OPTIONS.includes(name) || here.includes(" of ")) return here
  return `${here}, ${OF_ALL}${name === "onRejected" ? ", or of a Fastify route" : ""}`
}

/**
 * Returns the problems of options or of a rule. If an unknown member exists in another rate limiter, its problem
 * names Sluice's member instead of all accepted members.
 */
export function inOurNames(problems: readonly Problem[], ownNames: Names): readonly Problem[] {
  return problems.map((problem) => {
    const [place, name] = memberOf(problem.path)
    const names = place === "" ? ownNames : RULE_NAMES
    if (!Object.hasOwn(names, name)) return problem
    const what = names === OPTION_NAMES ? "the options" : "a rule"
    return {
      path: problem.path,
      message: `${JSON.stringify(name)} is not a member of ${what}; ${names[name]}`,
    }
  })
}

/**
 * Splits a path into a rule of a list and the rule's member. For example, `rules[1].max` becomes `rules[1].` and
 * `max`. The rule is empty if the path does not begin with a list.
 */
function memberOf(path: string): readonly [place: string, name: string] {
  const isInList = path.startsWith("rules[") || path.startsWith("defaultRules[")
  const place = isInList ? path.slice(0, path.indexOf(".") + 1) : ""
  return [place, path.slice(place.length)]
}
