import type { Problem } from "../../ground/errors.ts"
import { RULE_MEMBERS } from "../../rules/parsing/parse-rule.ts"
import { optionsShape } from "./options-shape.ts"

type Names = Readonly<Record<string, string>>

/** Names that other rate limiters have for the members of a rule, with hints to the names in Sluice. */
const MEMBER_NAMES: Names = {
  max: 'here it is "limit"',
  points: 'here it is "limit"',
  windowMs: 'here it is "window"',
  timeWindow: 'here it is "window"',
  // Some limiters use seconds, others milliseconds: copying the number could make a limit a thousand times too lax.
  duration: 'here it is "window", in milliseconds, or a text such as "60 seconds"',
  keyGenerator: 'here "field" names what is counted by, and "fields" how it is read',
  id: 'here "field" names what is counted by, and "fields" how it is read',
  identifier: 'here it is "name"',
  keyPrefix: 'here it is "name", beside the "service" of the limiter',
  groupId: 'here it is "group", of a route of Fastify',
  message: 'here it is "rejectionMessage", or "onRejected" for a whole answer',
  errorMessage: 'here it is "rejectionMessage", or "onRejected" for a whole answer',
  whitelist: 'here it is "allow"',
  whiteList: 'here it is "allow"',
  blacklist: 'here it is "deny"',
  blackList: 'here it is "deny"',
  allowList: 'here it is "allow", or "skip" for a function',
  isBlackListed: 'here it is "deny", or a "limit" of 0 by a function',
  ban: 'here it is "penalty"',
  blockDuration: 'here it is "penalty"',
  blockOnConsumed: 'here it is "penalty"',
  continueExceeding: 'here it is "countRejected"',
  execEvenly: 'here it is "algorithm": "leaky-bucket"',
  execEvenlyMinDelayMs: 'here it is "algorithm": "leaky-bucket"',
}

/** Names that other rate limiters have for the other options, with hints to the names in Sluice. */
export const OPTION_NAMES: Names = {
  ...MEMBER_NAMES,
  handler: 'here it is "onRejected"',
  statusCode: 'here it is "onRejected"',
  status: 'here it is "onRejected"',
  errorResponseBuilder: 'here it is "onRejected"',
  onExceeded: 'here it is "onRejected"',
  onLimited: 'here it is "onRejected"',
  retryAfter: 'here it is "onRejected"',
  throw: 'here "onRejected" answers, and nothing is thrown',
  onExceeding: 'here it is the event "decision"',
  onBanReach: 'here it is the event "decision"',
  isWhiteListed: 'here it is "skip"',
  skipSuccessfulRequests: 'here it is "refundWhen": (request, status) => status < 400',
  skipFailedRequests: 'here it is "refundWhen": (request, status) => status >= 400',
  requestWasSuccessful: 'here it is "refundWhen"',
  legacyHeaders: 'here it is "headers": "legacy" for true, and left out for false',
  standardHeaders: 'here it is "headers"',
  enableDraftSpec: 'here it is "headers": "triple"',
  addHeaders: 'here it is "headers"',
  addHeadersOnExceeding: 'here it is "headers"',
  disableHeader: 'here it is "headers": false',
  requestPropertyName: 'here it is "rateLimit", always',
  ipv6Subnet: 'here it is "ipv6Prefix"',
  validate: "here there is nothing to set",
  trustProxy: 'here it is "trustedProxies"',
  global: 'here "limit" and "window" are left out to limit only the routes that ask for it',
  passOnStoreError: 'here it is "onStoreFailure"',
  skipOnError: 'here it is "onStoreFailure"',
  insuranceLimiter: 'here it is "onStoreFailure"',
  timeoutMs: 'here it is "storeTimeoutMs"',
  driver: 'here it is "store"',
  db: 'here it is "store"',
  redis: 'here it is "store": redisStore({ client })',
  storeClient: 'here it is "store": redisStore({ client })',
  namespace: 'here it is "service"',
  nameSpace: 'here it is "service"',
  cache: 'here it is "maxKeys" of a memory store',
  inMemoryBlockOnConsumed: 'here it is "denyCacheMs" of a Redis store',
  inMemoryBlockDuration: 'here it is "denyCacheMs" of a Redis store',
  maxQueueSize: 'here it is "maxWaiting" of acquire()',
}

/** Options of a limiter that are not also members of a rule. */
const LIMITER_OPTIONS: readonly string[] = Object.keys(optionsShape.entries).filter(
  (name) => !(RULE_MEMBERS as readonly string[]).includes(name),
)
const OF_ALL = "an option of the limiter, for all its rules"

/** Hints for names that are used as members of a rule. Options of a limiter are not valid there. */
export const RULE_NAMES: Names = {
  ...Object.fromEntries(Object.entries(OPTION_NAMES).map(([name, here]) => [name, inRule(here)])),
  ...Object.fromEntries(LIMITER_OPTIONS.map((name) => [name, `it is ${OF_ALL}`])),
  ...MEMBER_NAMES,
}

function inRule(here: string): string {
  const [, name = ""] = /^here it is "(\w+)"/.exec(here) ?? []
  return LIMITER_OPTIONS.includes(name) && !here.includes(" of ") ? `${here}, ${OF_ALL}` : here
}

/**
 * Returns the problems of options or of a rule. If another rate limiter has the unknown member, its problem
 * shows Sluice's name for it instead of all accepted names.
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

/** Splits a path into the rule of a list, if any, and its member: `rules[1].max` is member `max` of `rules[1]`. */
function memberOf(path: string): readonly [place: string, name: string] {
  const isInList = path.startsWith("rules[") || path.startsWith("defaultRules[")
  const place = isInList ? path.slice(0, path.indexOf(".") + 1) : ""
  return [place, path.slice(place.length)]
}
