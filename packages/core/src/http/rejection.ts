import type { Decision, PolicyCheck } from "../decision/decision.ts"
import type { HeaderLine, Rejection } from "../ground/answer.ts"
import type { Warner } from "../ground/warnings.ts"
import type { ParsedOptions } from "../limiter/options/parse-options.ts"
import { secondsUntil, windowSeconds } from "./headers/header-values.ts"
import { textsOf } from "./headers/rule-texts.ts"
import { rememberJsonAcceptance } from "./rejection/accepts-json.ts"
import { withOwnBody } from "./rejection/own-body.ts"
import {
  type LargestCost,
  PROBLEMS,
  type ProblemDetails,
  problemDetail,
  withStatus,
} from "./rejection/problem.ts"
import { type RetryWriter, retryWriter, tellsInstant } from "./rejection/retry.ts"

/** The part of a rule that a rejection needs. */
export interface RejectionRule {
  readonly name: string
  /** Undefined when a function returns the window per request, and for calendar periods. */
  readonly windowMs: number | undefined
  /** Units that the rule takes for a request of cost 1. */
  readonly cost: number
  readonly rejectionMessage?: string | undefined
  /** The rule's own response to requests that it refuses with 429, instead of the standard response. */
  readonly rejection?: ParsedOptions["rejection"] | undefined
  /** Returns the largest burst, in units, that the rule admits under this limit. Default: the limit itself. */
  readonly most?: (limit: number) => number
}

/**
 * A function that returns the response to a refused client with this Accept header. Do not modify the result,
 * because refusals within one second may share it. `nowMs` returns epoch milliseconds.
 */
export type RejectionWriter = (
  decision: Decision,
  accept: string | readonly string[] | undefined,
  nowMs: () => number,
  request?: unknown,
) => Rejection

/** The message of a rule to the clients that it refuses. */
interface Message {
  readonly text: string
  readonly json: string
  readonly retry: RetryWriter | undefined
}

interface RuleText {
  readonly nameJson: string
  /**
   * The latest JSON rejection for which only this rule's quota was the reason, and the wait that this rejection
   * states.
   */
  last: { readonly seconds: number | undefined; readonly rejection: Rejection } | undefined
  /** Whether the body contains a point in time, and so may change every millisecond. */
  readonly tellsInstant: boolean
  readonly cost: number
  readonly most: ((limit: number) => number) | undefined
  readonly message: Message | undefined
  readonly own: ParsedOptions["rejection"] | undefined
}

/** The content of a body, to be written as JSON or as lines of text. */
interface Content {
  readonly problem: ProblemDetails
  /** The refusing checks that the body names. */
  readonly named: readonly PolicyCheck[]
  readonly detail: string
  readonly message: Message | undefined
}

const NO_STORE: HeaderLine = ["Cache-Control", "no-store"]
const JSON_TYPE: HeaderLine = ["Content-Type", "application/problem+json"]
const TEXT_TYPE: HeaderLine = ["Content-Type", "text/plain; charset=utf-8"]

/**
 * Returns a function that writes rejections under these rules. Compile the function again when the rules change.
 *
 * The body is a problem (RFC 9457) with `type`, `title`, `status` and `detail`. On 429 and 503, the body also
 * contains `violated-policies`, the names of the rules that refused. On 429, it also contains `rejection`, the
 * message of the rule that binds.
 *
 * Three messages have a machine-readable meaning. These messages come with `retry`, a {@link RetryAdvice}. All three
 * announce success after a wait, so the body omits them if waiting does not help. A client that does not accept JSON
 * receives the same information as lines of text. A rule may have another status and body for the requests that it
 * refuses with 429.
 *
 * `link` is the address of a page about the limits, for the header `Link` (RFC 8288).
 */
export function compileRejection(
  rules: readonly RejectionRule[],
  warner: Warner,
  link?: string,
): RejectionWriter {
  const textOf = textsOf(rules, ruleText)
  const help: HeaderLine | undefined = link === undefined ? undefined : ["Link", `<${link}>; rel="help"`]
  const largestCost = (check: PolicyCheck): LargestCost => {
    const { limit } = check
    const { cost = 1, most } = textOf(check) ?? {}
    return { ruleCost: cost, largest: Math.floor((most === undefined ? limit : most(limit)) / cost) }
  }
  const nameJson = (check: PolicyCheck): string => textOf(check)?.nameJson ?? JSON.stringify(check.policy)
  const takesJson = rememberJsonAcceptance()

  return (decision, accept, nowMs, request) => {
    const seconds = secondsUntil(decision.retryAfterMs)
    const own = ownTextOf(decision)?.own
    if (typeof own?.body === "object") {
      const { contentType, text } = own.body
      return rejectionOf(own.status ?? 429, seconds, ["Content-Type", contentType], help, text)
    }
    const standard = standardOf(decision, seconds, accept, nowMs)
    if (own?.body === undefined) return standard
    return withOwnBody(standard, { ...own, body: own.body }, request, decision, warner)
  }

  function standardOf(
    decision: Decision,
    seconds: number | undefined,
    accept: string | readonly string[] | undefined,
    nowMs: () => number,
  ): Rejection {
    if (!takesJson(accept)) {
      const content = contentOf(decision, seconds)
      return rejectionOf(content.problem.status, seconds, TEXT_TYPE, help, textBody(content))
    }
    const text = usualText(decision)
    if (text === undefined || text.tellsInstant) return jsonRejection(decision, seconds, nowMs)
    // Reuse the response, which stays the same for a second during a flood. Once it has been sent, V8 has also
    // flattened its string.
    if (text.last === undefined || text.last.seconds !== seconds) {
      text.last = { seconds, rejection: jsonRejection(decision, seconds, nowMs) }
    }
    return text.last.rejection
  }

  function jsonRejection(decision: Decision, seconds: number | undefined, nowMs: () => number): Rejection {
    const content = contentOf(decision, seconds)
    const body = jsonOf(content, decision, seconds, nowMs)
    return rejectionOf(content.problem.status, seconds, JSON_TYPE, help, body)
  }

  /** Returns the text of the rule that binds. Undefined if that rule has not refused with 429. */
  function ownTextOf({ refusal, policy, checks }: Decision): RuleText | undefined {
    // If another request of the group was refused, the rule that binds has not refused, so its message would mislead.
    const isOwn = refusal !== undefined && refusal !== "group" && PROBLEMS[refusal].status === 429
    const binding = isOwn ? checks.find((check) => check.policy === policy) : undefined
    return binding && textOf(binding)
  }

  /**
   * Returns the text of the rule in the usual case, in which the quota of a single rule refuses. Undefined in any
   * other case.
   */
  function usualText(decision: Decision): RuleText | undefined {
    const isUsual = decision.refusal === "quota" && decision.checks.length === 1
    return isUsual ? textOf(decision.checks[0] as PolicyCheck) : undefined
  }

  function contentOf(decision: Decision, seconds: number | undefined): Content {
    const refusal = decision.refusal ?? "quota"
    const text = ownTextOf(decision)
    const refusing = decision.checks.filter(isRefusing)
    return {
      problem: withStatus(PROBLEMS[refusal], text?.own?.status),
      named: refusal === "missing-field" ? [] : refusing,
      detail: problemDetail(refusal, refusing, seconds, largestCost),
      message: spoken(text?.message, seconds),
    }
  }

  function jsonOf(
    { problem, named, detail, message }: Content,
    { retryAfterMs }: Decision,
    seconds: number | undefined,
    nowMs: () => number,
  ): string {
    let body = `${problem.json},"detail":${JSON.stringify(detail)}`
    if (named.length > 0) body += `,"violated-policies":[${named.map(nameJson).join(",")}]`
    if (message !== undefined) body += message.json
    // `seconds` is defined, because `spoken` drops a message with `retry` if waiting does not help.
    if (message?.retry !== undefined)
      body += `,"retry":${message.retry(seconds as number, retryAfterMs, nowMs)}`
    return `${body}}`
  }
}

function rejectionOf(
  status: number,
  seconds: number | undefined,
  type: HeaderLine,
  help: HeaderLine | undefined,
  body: string,
): Rejection {
  const headers = help === undefined ? [NO_STORE, type] : [NO_STORE, type, help]
  return {
    status,
    headers: seconds === undefined ? headers : [["Retry-After", String(seconds)], ...headers],
    body,
  }
}

function isRefusing({ allowed, shadow }: PolicyCheck): boolean {
  return !allowed && !shadow
}

/** Returns the message. Undefined if the message announces success after a wait but waiting does not help. */
function spoken(message: Message | undefined, seconds: number | undefined): Message | undefined {
  return seconds === undefined && message?.retry !== undefined ? undefined : message
}

function textBody({ problem, named, detail, message }: Content): string {
  const policies = named.length === 0 ? "" : `: ${named.map(({ policy }) => policy).join(", ")}`
  return `${problem.title}${policies}\n${detail}\n${message === undefined ? "" : `${message.text}\n`}`
}

function ruleText({
  name,
  windowMs,
  cost,
  most,
  rejectionMessage: text,
  rejection,
}: RejectionRule & { readonly windowMs: number }): RuleText {
  const message: Message | undefined =
    text === undefined
      ? undefined
      : {
          text,
          json: `,"rejection":${JSON.stringify(text)}`,
          retry: retryWriter(text, windowSeconds(windowMs)),
        }
  return {
    nameJson: JSON.stringify(name),
    cost,
    most,
    message,
    own: rejection,
    last: undefined,
    tellsInstant: tellsInstant(text),
  }
}
