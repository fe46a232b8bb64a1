import * as v from "valibot"
import { ALGORITHM_NAMES, ALGORITHMS } from "../../algorithms/kinds.ts"
import { anchorOf, isTimeZone } from "../../ground/calendar.ts"
import { DURATION_ACCEPTED, parseDuration } from "../../ground/duration.ts"
import { PERMITS, REQUESTS } from "../../ground/policy.ts"
import { choice, integer, type Schema, says } from "../../ground/shape.ts"
import type { Rule } from "../rule.ts"
import { fieldNames } from "./field-name.ts"
import { matchShape, storedMatch, values } from "./match-members.ts"
import type { RuleMember } from "./member.ts"
import { overridesShape, storeOverrides } from "./override-members.ts"
import { penaltyShape, storePenalty } from "./penalty-members.ts"
import { REJECTION_NAMES, rejectionShape, storedRejection, storeRejection } from "./rejection-members.ts"
import { storeDuration } from "./stored-size.ts"
import { QUEUE_NAMES, storedThrottle, storeThrottle, throttleShape } from "./throttle-members.ts"
import { POSITIVE } from "./units.ts"

/** The accepted names of rules, for error messages. */
export const NAME_ACCEPTED = '1 to 64 printable ASCII characters without " and \\'
/**
 * Matches valid names. Names are written into header fields unchanged (RFC 9651 section 3.3.3), so they must not need
 * escaping.
 */
export const NAME: RegExp = /^[\x20!\x23-\x5b\x5d-\x7e]{1,64}$/

const NAME_SAID = says("a name", NAME_ACCEPTED)
const UNIT_SAID = says("the name of a unit", `${NAME_ACCEPTED}, such as "tokens"`)
/** The names of units that the app counts. Headers contain them as they are, too. */
export const unitShape: Schema = v.pipe(
  v.string(UNIT_SAID),
  v.regex(NAME, UNIT_SAID),
  v.check(
    (name) => name !== PERMITS,
    says("a unit of your own", "another name; a rule with concurrent limits requests in progress"),
  ),
)
const MESSAGE = says("a rejection message", "a string of 1 to 1024 characters")
const THRESHOLDS = says("a list of percentages", "a list such as [80, 100]")
const THRESHOLD = says("a percentage of the limit", "a whole number from 1 to 100")
const BOOLEAN = v.boolean(says("a boolean", "true or false"))
const limit = integer(says("a limit", POSITIVE), 1)
const MOST_PERMITS = ALGORITHMS["in-flight"].mostUnits as number
/** The accepted values of a stored `concurrent`, for error messages. */
export const PERMITS_ACCEPTED: string = `a whole number from 1 to ${MOST_PERMITS}`
const permits = integer(says("a number of requests", PERMITS_ACCEPTED), 1, MOST_PERMITS)
/**
 * Accepts a number of the shape or a function. A union is not used here, because for 0 it would report only an invalid
 * number, without the accepted function.
 */
const orFunction = (shape: Schema, noun: string, accepted: string): Schema =>
  v.custom(
    (value) => typeof value === "function" || v.is(shape, value),
    says(noun, `${accepted}, or a function that returns one for a request`),
  )
const window = v.custom((value) => parseDuration(value) !== undefined, says("a window", DURATION_ACCEPTED))
/** Returns a day as a number if it has no month, and otherwise as a date. */
function storeAnchor(anchor: unknown): unknown {
  if (anchor instanceof Date) return anchor.toISOString().slice(0, 10)
  return typeof anchor === "string" && !anchor.includes("-") ? Number(anchor) : anchor
}
/** The accepted anchors, for error messages. Whether one fits the period is checked later. */
export const ANCHOR_ACCEPTED = 'a day such as 31, a date such as "2026-01-31", or for a year "01-31"'
const PERIODS = ["week", "month", "year"] as const
const anchor = v.custom(
  (value) => PERIODS.some((per) => anchorOf(per, value) !== undefined),
  says("an anchor", ANCHOR_ACCEPTED),
)
const SHORTEST_HOLD_MS = 2_000
const LONGEST_HOLD_MS = 3_600_000
function isHold(value: unknown): boolean {
  const ms = parseDuration(value) ?? 0
  return ms >= SHORTEST_HOLD_MS && ms <= LONGEST_HOLD_MS
}

const either = new Intl.ListFormat("en", { type: "disjunction" })
const algorithms = ALGORITHM_NAMES.map((name) => `${ALGORITHMS[name].summary} (${name})`)

/**
 * The members of a rule, in the order in which they are listed and stored. This table defines how code, documents and
 * the JSON Schema read and write rules. A new plain member needs only its type and an entry here.
 */
export const RULE_MEMBERS: { readonly [Name in keyof Rule]-?: RuleMember<NonNullable<Rule[Name]>> } = {
  name: {
    shape: v.pipe(v.string(NAME_SAID), v.regex(NAME, NAME_SAID)),
    description:
      "The rule's name in headers, problems and events. It must be unique within the service. Default: the field and the window, such as ip-1m.",
  },
  field: {
    shape: fieldNames,
    description:
      "Requests with the same value of this field are counted together: ip, method, route, header:NAME, query:NAME, body:PATH, param:NAME, cookie:NAME, or a name that the app has an extractor for, such as user_id. A list combines several fields. Default: service, which counts all requests together.",
  },
  limit: {
    shape: orFunction(limit, "a limit", POSITIVE),
    storedShape: limit,
    description: "Number of units admitted per window. Requires window or per.",
  },
  window: {
    shape: orFunction(window, "a window", DURATION_ACCEPTED),
    storedShape: window,
    description:
      "Length of the window: a number of milliseconds, or a string such as 90 seconds, 15m or 2 weeks. Requires limit.",
  },
  per: {
    shape: v.picklist(
      ["day", ...PERIODS],
      says(
        "a calendar period",
        '"day", "week", "month", "year"; for other times, use "window", such as "1 minute"',
      ),
    ),
    description:
      "The calendar period in which limit applies, instead of a window. Counts as fixed-window does.",
  },
  timeZone: {
    stored: ["time_zone"],
    shape: v.custom(isTimeZone, says("a time zone", 'an IANA name such as "Europe/Berlin", or "UTC"')),
    description: "The IANA name of the time zone in which the days of per begin. Default: UTC.",
  },
  anchor: {
    shape: orFunction(anchor, "an anchor", ANCHOR_ACCEPTED),
    storedShape: anchor,
    store: storeAnchor,
    description:
      "The day on which a period of per begins: 1 (Monday) to 7 of a week, 1 to 31 of a month, or a date of a year such as 04-01. A month without this day begins a period on its last day. Default: the first day.",
  },
  concurrent: {
    shape: orFunction(permits, "a number of requests", PERMITS_ACCEPTED),
    storedShape: permits,
    description:
      "Number of requests that may be in progress at the same time, instead of a limit and a window.",
  },
  hold: {
    shape: v.custom(
      isHold,
      says("a valid time", 'a time from 2 seconds to 1 hour: a string such as "30 seconds", or milliseconds'),
    ),
    default: "30 seconds",
    store: storeDuration,
    description:
      "Longest time for which a request still counts after its process has ended: a number of milliseconds, or a string, from 2 seconds to 1 hour. Only with concurrent.",
  },
  cost: {
    shape: integer(says("a cost", POSITIVE), 1),
    default: 1,
    description: "Number of units that one request takes, multiplied by the request's own cost.",
  },
  match: {
    shape: matchShape,
    storedShape: storedMatch,
    description:
      "The requests that the rule applies to. A request must match every member given here. Default: all requests.",
  },
  allow: {
    shape: values,
    default: [],
    description: "Values of the rule's field that are never counted. For ip: addresses and CIDRs.",
  },
  deny: {
    shape: values,
    default: [],
    description: "Values of the rule's field that are always refused. For ip: addresses and CIDRs.",
  },
  overrides: {
    shape: overridesShape,
    store: storeOverrides,
    description:
      "Other limits by the value of the rule's field, such as ann: 2 or vip-7: { limit: 500 }. For ip: addresses and CIDRs, of which the narrowest applies.",
  },
  onMissing: {
    stored: ["on_missing"],
    shape: choice("a valid value", ["ip", "skip", "deny", "shared"]),
    default: "ip",
    description:
      "What to do with a request without the field: count it by address (ip, the default), count all such requests together (shared), do not count it (skip), or refuse it with 400 (deny).",
  },
  counts: {
    shape: unitShape,
    default: REQUESTS,
    description:
      "The unit that the rule counts, such as tokens or bytes. The app says how many a request takes. Default: requests.",
  },
  algorithm: {
    shape: choice("an algorithm", ALGORITHM_NAMES),
    default: "sliding-window",
    description: `How requests are counted: ${either.format(algorithms)}.`,
  },
  align: {
    shape: choice("an alignment", ["epoch", "first-hit"]),
    default: "epoch",
    description:
      "When windows begin: at whole multiples of the window since 1970 (epoch), or at a client's first request (first-hit). Only for fixed-window.",
  },
  buckets: {
    shape: integer(says("a valid number of sub-windows", "a whole number from 2 to 360"), 2, 360),
    description:
      "Number of sub-windows. More sub-windows count more precisely. Only for sliding-window (default: two whole windows) and sliding-window-strict (default: 60).",
  },
  burst: {
    shape: integer(says("a burst", POSITIVE), 1),
    description:
      "Number of units that the bucket holds. Only for token-bucket and leaky-bucket. Default: the limit.",
  },
  refill: {
    shape: choice("a refill", ["continuous", "periodic"]),
    default: "continuous",
    description:
      "How tokens are refilled: evenly over the window (continuous), or all in one step when a window begins (periodic). Only for token-bucket.",
  },
  throttle: {
    shape: throttleShape,
    storedShape: storedThrottle,
    names: QUEUE_NAMES,
    store: storeThrottle,
    description:
      "What to do with a request above the limit: refuse it (hard, the default), admit a given percentage more (soft), admit it while there is spare capacity (elastic), or hold it until it fits (queue, the default of leaky-bucket).",
  },
  countRejected: {
    stored: ["count_rejected"],
    shape: BOOLEAN,
    default: false,
    description:
      "True if refused requests also count, so that a client that continues to send requests stays refused.",
  },
  penalty: {
    shape: penaltyShape,
    store: storePenalty,
    description: "Blocks a client that was refused too often. Requires a field.",
  },
  notify: {
    shape: v.pipe(
      v.array(integer(THRESHOLD, 1, 100), THRESHOLDS),
      v.minLength(1, THRESHOLDS),
      v.checkItems(
        (percent, index, all) => all.indexOf(percent) === index,
        says("unique in the list", "each percentage once"),
      ),
    ),
    description:
      "Percentages of the limit, such as [80, 100]. The event near-limit and a metric report that a client has used such a percentage, at most once per client and window in each process. 100 means that no units remain.",
  },
  shadow: {
    shape: BOOLEAN,
    default: false,
    description: "True if the rule counts and reports but never refuses, to try it out.",
  },
  onStoreFailure: {
    stored: ["on_store_failure"],
    shape: choice("a valid value", ["local", "allow", "deny"]),
    description:
      "What to do when the shared store fails: count in the process (local), admit the request (allow), or refuse it with 503 (deny). Default: the limiter's own option.",
  },
  rejectionMessage: {
    stored: ["request_rejection_message", "rejection_message", "errorMessage"],
    shape: v.pipe(v.string(MESSAGE), v.minLength(1, MESSAGE), v.maxLength(1024, MESSAGE)),
    description:
      "Message for a refused client: any string, or one of three strings that programs understand: retry-with-exponential-backoff, retry-with-fixed-time, exhausted-daily-limit.",
  },
  rejection: {
    shape: rejectionShape,
    storedShape: storedRejection,
    names: REJECTION_NAMES,
    store: storeRejection,
    description:
      "The response to a refused request, instead of the standard one. Headers such as Retry-After are still sent. Default: the limiter's own option.",
  },
}

/** Names that other rate limiters have for the members of a rule. */
export const NAMES_ELSEWHERE: Readonly<Record<string, string>> = {
  max: "limit",
  points: "limit",
  duration: "window",
  timeWindow: "window",
  windowMs: "window",
  interval: "window",
  period: 'window" or "per',
  unit: 'window" or "per',
  timezone: "timeZone",
  tz: "timeZone",
  ttl: "window",
  requests: "limit",
  maxConcurrent: "concurrent",
  concurrency: "concurrent",
  key: "field",
  by: "field",
  path: "match",
  methods: "match",
  queue: "throttle",
  dryRun: "shadow",
  dry_run: "shadow",
}
