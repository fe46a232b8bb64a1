import * as v from "valibot"
import {
  answersAtOnce,
  integer,
  type ObjectSchema,
  readShape,
  type Schema,
  says,
  strict,
} from "../../ground/shape.ts"
import { type MemberProblem, show } from "../../ground/show.ts"
import { LONGEST_TIMER_MS } from "../../ground/time.ts"
import type { Throttle, ThrottleQueue } from "../throttle.ts"
import { POSITIVE } from "./rule-members.ts"

type ThrottleKind = Exclude<Throttle, string>["kind"]

const KINDS: readonly ThrottleKind[] = ["hard", "soft", "elastic", "queue"]
const KINDS_ACCEPTED = KINDS.map((kind) => `"${kind}"`).join(", ")
const THROTTLE_ACCEPTED =
  '"hard", or an object with the kind "hard", "soft" (and percent), "elastic" or "queue", such as {"kind": "soft", "percent": 5}'

const kind = (name: ThrottleKind): Schema => v.literal(name, says("a kind of throttle", `"${name}"`))
const PERCENT = says("a percentage", "a number above 0 and up to 1000")
const WAIT = says("a wait", `a whole number of milliseconds from 1 to ${LONGEST_TIMER_MS}`)
const SIGNAL = says("a signal", "a function that returns whether there is spare capacity")

const percent = v.pipe(v.number(PERCENT), v.gtValue(0, PERCENT), v.maxValue(1000, PERCENT))
const ceiling = v.optional(integer(says("a ceiling", POSITIVE), 1))
/** 0 is only valid for a leaky bucket, which `contradictions` checks. */
const maxWaiting = v.optional(
  integer(says("a valid number of waiting requests", `${POSITIVE}, or 0 for a leaky bucket`), 0),
)
const maxWaitMs = v.optional(integer(WAIT, 1, LONGEST_TIMER_MS))

/** The shape of a queue of another kind of throttle in documents. */
export const storedQueue = strict("a queue", { max_waiting: maxWaiting, max_wait_ms: maxWaitMs })
const codeQueue = v.optional(strict("a queue", { maxWaiting, maxWaitMs }))

/** The throttle shapes of documents, without members that only code can have. */
export const storedThrottles = {
  hard: strict('a "hard" throttle', { kind: kind("hard") }),
  soft: strict('a "soft" throttle', { kind: kind("soft"), percent, queue: v.optional(storedQueue) }),
  elastic: strict('an "elastic" throttle', {
    kind: kind("elastic"),
    ceiling,
    queue: v.optional(storedQueue),
  }),
  queue: strict('a "queue" throttle', {
    kind: kind("queue"),
    max_waiting: maxWaiting,
    max_wait_ms: maxWaitMs,
  }),
} as const

const codeThrottles: Readonly<Record<ThrottleKind, ObjectSchema>> = {
  hard: storedThrottles.hard,
  soft: strict('a "soft" throttle', { kind: kind("soft"), percent, queue: codeQueue }),
  elastic: strict('an "elastic" throttle', {
    kind: kind("elastic"),
    ceiling,
    signal: v.optional(v.custom(answersAtOnce, SIGNAL)),
    queue: codeQueue,
  }),
  queue: strict('a "queue" throttle', { kind: kind("queue"), maxWaiting, maxWaitMs }),
}

/** A rule's throttle with the names used in code, or its problems with paths from the rule. */
export interface ReadThrottle {
  readonly throttle?: Throttle
  readonly problems: readonly MemberProblem[]
}

/** Reads a throttle as written in code or in documents. */
export function readThrottle(value: unknown, written: "code" | "stored"): ReadThrottle {
  if (value === "hard") return { throttle: value, problems: [] }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const message = `${show(value)} is not a throttle`
    return { problems: [{ path: ["throttle"], message, accepted: THROTTLE_ACCEPTED }] }
  }
  const { kind } = value as { readonly kind?: ThrottleKind }
  if (kind === undefined || !KINDS.includes(kind)) {
    const message = kind === undefined ? "is missing" : `${show(kind)} is not a kind of throttle`
    return { problems: [{ path: ["throttle", "kind"], message, accepted: KINDS_ACCEPTED }] }
  }
  const shapes: Readonly<Record<ThrottleKind, ObjectSchema>> =
    written === "code" ? codeThrottles : storedThrottles
  const { good, problems } = readShape(shapes[kind], value)
  if (problems.length > 0) {
    return { problems: problems.map((problem) => ({ ...problem, path: ["throttle", ...problem.path] })) }
  }
  return { throttle: inCode(good) as unknown as Throttle, problems: [] }
}

type ThrottleMembers = Readonly<Record<string, unknown>>

const IN_CODE: ReadonlyMap<string, string> = new Map([
  ["max_waiting", "maxWaiting"],
  ["max_wait_ms", "maxWaitMs"],
])

/** Returns the members that are given, with the names used in code. */
function inCode(members: ThrottleMembers): ThrottleMembers {
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  return Object.fromEntries(
    given.map(([name, value]) => [
      IN_CODE.get(name) ?? name,
      name === "queue" ? inCode(value as ThrottleMembers) : value,
    ]),
  )
}

/**
 * Returns the throttle as it is stored, with a fixed order and spelling. The caller has checked that it is valid and
 * without a signal.
 */
export function storeThrottle(throttle: Throttle): unknown {
  if (typeof throttle === "string" || throttle.kind === "hard") return "hard"
  if (throttle.kind === "queue") return { kind: throttle.kind, ...storeQueue(throttle) }
  const { kind, queue, ...members } = throttle
  const { percent, ceiling }: ThrottleMembers = members
  return { kind, percent, ceiling, queue: queue && storeQueue(queue) }
}

function storeQueue({ maxWaiting, maxWaitMs }: ThrottleQueue): ThrottleMembers {
  return { max_waiting: maxWaiting, max_wait_ms: maxWaitMs }
}
