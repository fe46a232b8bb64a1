import * as v from "valibot"
import {
  answersAtOnce,
  integer,
  isObject,
  type ObjectSchema,
  type Schema,
  says,
  strict,
} from "../../ground/shape.ts"
import { LONGEST_TIMER_MS } from "../../ground/time.ts"
import type { Throttle, ThrottleQueue } from "../throttle.ts"
import { renamed, type StoredNames } from "./member.ts"
import { POSITIVE } from "./units.ts"

type ThrottleKind = Exclude<Throttle, string>["kind"]

const KINDS: readonly ThrottleKind[] = ["hard", "soft", "elastic", "queue"]
const KIND = says("a kind of throttle", KINDS.map((kind) => `"${kind}"`).join(", "))
const THROTTLE = says(
  "a throttle",
  '"hard", or an object with the kind "hard", "soft" (and percent), "elastic" or "queue", such as {"kind": "soft", "percent": 5}',
)
const PERCENT = says("a percentage", "a number above 0 and up to 1000")
const WAIT = says("a wait", `a whole number of milliseconds from 1 to ${LONGEST_TIMER_MS}`)
const SIGNAL = says("a signal", "a function that returns whether there is spare capacity")

/** The names of a queue's members in documents. */
export const QUEUE_NAMES: StoredNames = { maxWaiting: "max_waiting", maxWaitMs: "max_wait_ms" }
const codeQueue = strict("a queue", {
  /** 0 is valid only for a leaky bucket, which `contradictions` checks. */
  maxWaiting: v.optional(
    integer(says("a valid number of waiting requests", `${POSITIVE}, or 0 for a leaky bucket`), 0),
  ),
  maxWaitMs: v.optional(integer(WAIT, 1, LONGEST_TIMER_MS)),
})
/** The shape of the member `queue` of another kind of throttle in documents. */
export const storedQueue: ObjectSchema = strict("a queue", renamed(codeQueue.entries, QUEUE_NAMES))

type ThrottleShapes = Readonly<Record<ThrottleKind, ObjectSchema>>

function shapesWith(queue: ObjectSchema, ofElastic: Readonly<Record<string, Schema>>): ThrottleShapes {
  const shapeOf = (kind: ThrottleKind, members: Readonly<Record<string, Schema>>): ObjectSchema =>
    strict(`${kind === "elastic" ? "an" : "a"} "${kind}" throttle`, {
      kind: v.literal(kind, KIND),
      ...members,
    })
  const ceiling = v.optional(integer(says("a ceiling", POSITIVE), 1))
  return {
    hard: shapeOf("hard", {}),
    soft: shapeOf("soft", {
      percent: v.pipe(v.number(PERCENT), v.gtValue(0, PERCENT), v.maxValue(1000, PERCENT)),
      queue: v.optional(queue),
    }),
    elastic: shapeOf("elastic", { ceiling, ...ofElastic, queue: v.optional(queue) }),
    queue: shapeOf("queue", queue.entries),
  }
}

/** The throttle shapes of documents, without members that are possible only in code. */
export const storedThrottles: ThrottleShapes = shapesWith(storedQueue, {})
const codeThrottles = shapesWith(codeQueue, { signal: v.optional(v.custom(answersAtOnce, SIGNAL)) })

/** Checks the kind first, so that all other problems are about the members of this kind. */
function throttleOf(shapes: ThrottleShapes): Schema {
  const hard = v.custom((value) => value === "hard", THROTTLE)
  const wrongKind = v.object({ kind: v.picklist(KINDS, KIND) }, KIND)
  return v.lazy((value) => {
    if (!isObject(value)) return hard
    return KINDS.includes(value.kind as ThrottleKind) ? shapes[value.kind as ThrottleKind] : wrongKind
  })
}

/** A throttle in code. */
export const throttleShape: Schema = throttleOf(codeThrottles)
/** A throttle in documents. */
export const storedThrottle: Schema = throttleOf(storedThrottles)

/**
 * Returns the stored form of the throttle, with a fixed order and spelling. The caller has checked that the throttle
 * is valid and has no signal.
 */
export function storeThrottle(throttle: Throttle): unknown {
  if (typeof throttle === "string" || throttle.kind === "hard") return "hard"
  if (throttle.kind === "queue") return { kind: throttle.kind, ...storeQueue(throttle) }
  const { kind, queue, ...members } = throttle
  const { percent, ceiling }: { readonly percent?: number; readonly ceiling?: number | undefined } = members
  return { kind, percent, ceiling, queue: queue && storeQueue(queue) }
}

function storeQueue({ maxWaiting, maxWaitMs }: ThrottleQueue): object {
  return { max_waiting: maxWaiting, max_wait_ms: maxWaitMs }
}
