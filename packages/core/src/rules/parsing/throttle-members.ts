import { z } from "zod"
import { answersAtOnce, choice, readShape, says, strict } from "../../ground/shape.ts"
import { type MemberProblem, show } from "../../ground/show.ts"
import { LONGEST_TIMER_MS } from "../../ground/time.ts"
import type { Throttle } from "../rule.ts"
import { POSITIVE } from "./rule-members.ts"

type ThrottleKind = Exclude<Throttle, string>["kind"]

const KINDS: readonly [ThrottleKind, ...ThrottleKind[]] = ["hard", "soft", "elastic", "queue"]
const THROTTLE_ACCEPTED =
  '"hard", or an object with the kind "hard", "soft" (and percent), "elastic" or "queue", such as {"kind": "soft", "percent": 5}'

const kind = <K extends ThrottleKind>(name: K): z.ZodLiteral<K> =>
  z.literal(name, says("a throttling kind", `"${name}"`))
const units = (noun: string): z.ZodInt => z.int(says(noun, POSITIVE)).min(1, says(noun, POSITIVE))
const PERCENT = says("a percentage", "a number above 0, up to 1000")
const WAIT = says("a wait", `milliseconds from 1 to ${LONGEST_TIMER_MS}`)
const SIGNAL = says("a signal", "a function that yields whether there is capacity to spare")

const percent = z.number(PERCENT).gt(0, PERCENT).max(1000, PERCENT)
const ceiling = units("a ceiling").optional()
const WAITING = says("a number of waiting requests", `${POSITIVE}, or 0 for a leaky bucket`)
/** 0 is for a leaky bucket alone, which `contradictions` sees to. */
const maxWaiting = z.int(WAITING).min(0, WAITING).optional()
const maxWaitMs = z.int(WAIT).min(1, WAIT).max(LONGEST_TIMER_MS, WAIT).optional()

const hard = strict('a "hard" throttle', { kind: kind("hard") })
const soft = strict('a "soft" throttle', { kind: kind("soft"), percent })

/** As in documents. Without a transformation, and without what only code can have. */
export const storedThrottles = {
  hard,
  soft,
  elastic: strict('an "elastic" throttle', { kind: kind("elastic"), ceiling }),
  queue: strict('a "queue" throttle', {
    kind: kind("queue"),
    max_waiting: maxWaiting,
    max_wait_ms: maxWaitMs,
  }),
} as const

const codeThrottles: Readonly<Record<ThrottleKind, z.ZodObject>> = {
  hard,
  soft,
  elastic: strict('an "elastic" throttle', {
    kind: kind("elastic"),
    ceiling,
    signal: z.custom<() => boolean>(answersAtOnce, SIGNAL).optional(),
  }),
  queue: strict('a "queue" throttle', { kind: kind("queue"), maxWaiting, maxWaitMs }),
}

/** A stored throttle, for the JSON Schema; what is wrong with one is found by its kind (`readThrottle`). */
export const storedThrottle: z.ZodType = z.union(
  [z.literal("hard"), ...Object.values(storedThrottles)],
  says("a throttling kind", THROTTLE_ACCEPTED),
)

const anyKind = z.looseObject({ kind: choice("a throttling kind", KINDS) })

/** A rule's throttle in the code's names, where it is right; else what is wrong, with paths from the rule. */
export interface ReadThrottle {
  readonly throttle?: Throttle
  readonly problems: readonly MemberProblem[]
}

/** Reads a throttle as it is written in code or in documents. */
export function readThrottle(value: unknown, written: "code" | "stored"): ReadThrottle {
  if (value === "hard") return { throttle: value, problems: [] }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const message = `${show(value)} is not a throttling kind`
    return { problems: [{ path: ["throttle"], message, accepted: THROTTLE_ACCEPTED }] }
  }
  const head = readShape(anyKind, value)
  const shapes: Readonly<Record<ThrottleKind, z.ZodObject>> =
    written === "code" ? codeThrottles : storedThrottles
  const { good, problems } =
    head.problems.length > 0 ? head : readShape(shapes[head.good.kind as ThrottleKind], value)
  if (problems.length > 0) {
    return { problems: problems.map((problem) => ({ ...problem, path: ["throttle", ...problem.path] })) }
  }
  const { max_waiting, max_wait_ms, ...same } = good
  const throttle = {
    ...same,
    ...(max_waiting !== undefined && { maxWaiting: max_waiting }),
    ...(max_wait_ms !== undefined && { maxWaitMs: max_wait_ms }),
  }
  return { throttle: throttle as unknown as Throttle, problems: [] }
}

/** The throttle as it is stored, in its one order and spelling. The caller has checked it, and that it has no signal. */
export function storeThrottle(throttle: Throttle): unknown {
  if (typeof throttle === "string" || throttle.kind === "hard") return "hard"
  switch (throttle.kind) {
    case "soft":
      return { kind: "soft", percent: throttle.percent }
    case "elastic":
      return { kind: "elastic", ceiling: throttle.ceiling }
    case "queue":
      return { kind: "queue", max_waiting: throttle.maxWaiting, max_wait_ms: throttle.maxWaitMs }
  }
}
