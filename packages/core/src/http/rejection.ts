import type { Decision, PolicyCheck } from "../decision/decision.ts"
import type { HeaderLine, Rejection } from "../limiter/options/answer-options.ts"
import { secondsUntil, windowSeconds } from "./headers/header-values.ts"
import { textsOf } from "./headers/rule-texts.ts"
import { rememberJsonAcceptance } from "./rejection/accepts-json.ts"
import { type LargestCost, PROBLEMS, type ProblemDetails, problemDetail } from "./rejection/problem.ts"
import { type RetryWriter, retryWriter, tellsInstant } from "./rejection/retry.ts"

/** What a rule contributes to a rejection. */
export interface RejectionRule {
  readonly name: string
  readonly windowMs: number
  /** Units that the rule takes for a request of cost 1. */
  readonly cost: number
  readonly rejectionMessage?: string | undefined
  /** Units that it ever admits at once where its limit is so much. Default: the limit. */
  readonly most?: (limit: number) => number
}

/**
 * The rejection of a refusal, for a client with this Accept header. Refusals of one second may share it: not to be written to.
 * `nowMs` yields epoch milliseconds.
 */
export type RejectionWriter = (
  decision: Decision,
  accept: string | readonly string[] | undefined,
  nowMs: () => number,
) => Rejection

/** What a rule says to those whom it refuses. */
interface Message {
  readonly text: string
  readonly json: string
  readonly retry: RetryWriter | undefined
}

interface RuleText {
  readonly nameJson: string
  /** What was written last for a quota of this rule alone, in JSON, and the wait that it tells. */
  last: { readonly seconds: number | undefined; readonly rejection: Rejection } | undefined
  /** Whether its body is another one in each millisecond. */
  readonly tellsInstant: boolean
  readonly cost: number
  readonly most: ((limit: number) => number) | undefined
  readonly message: Message | undefined
}

/** What a body says, in JSON or in lines of text. */
interface Content {
  readonly problem: ProblemDetails
  readonly refusing: readonly PolicyCheck[]
  readonly detail: string
  readonly message: Message | undefined
}

const NO_STORE: HeaderLine = ["Cache-Control", "no-store"]
const JSON_TYPE: HeaderLine = ["Content-Type", "application/problem+json"]
const TEXT_TYPE: HeaderLine = ["Content-Type", "text/plain; charset=utf-8"]

/**
 * The function that writes rejections under these rules; compile anew when they change.
 *
 * The body is a problem (RFC 9457): `type`, `title`, `status`, `detail`; on 429 and 503 `violated-policies`, the names
 * of the rules that refused; and on 429 `rejection`, the message of the rule that binds, with `retry`, a
 * {@link RetryAdvice}, when it is one of the three messages with a machine-readable meaning. Those three speak of a time to
 * wait and are left out where there is none. A client that does not take JSON gets the same facts as lines of text.
 */
export function compileRejection(rules: readonly RejectionRule[]): RejectionWriter {
  const textOf = textsOf(rules, ruleText)
  const largestCost = ({ policy, limit }: PolicyCheck): LargestCost => {
    const { cost = 1, most } = textOf(policy) ?? {}
    return { ruleCost: cost, largest: Math.floor((most === undefined ? limit : most(limit)) / cost) }
  }
  const nameJson = ({ policy }: PolicyCheck): string => textOf(policy)?.nameJson ?? JSON.stringify(policy)
  const takesJson = rememberJsonAcceptance()

  return (decision, accept, nowMs) => {
    const seconds = secondsUntil(decision.retryAfterMs)
    if (!takesJson(accept)) {
      return rejectionOf(decision, seconds, TEXT_TYPE, textBody(contentOf(decision, seconds)))
    }
    const text = usualText(decision)
    if (text === undefined || text.tellsInstant) return jsonRejection(decision, seconds, nowMs)
    // What floods are answered with is the same for a second, and its text is flat once it has been sent.
    if (text.last === undefined || text.last.seconds !== seconds) {
      text.last = { seconds, rejection: jsonRejection(decision, seconds, nowMs) }
    }
    return text.last.rejection
  }

  function jsonRejection(decision: Decision, seconds: number | undefined, nowMs: () => number): Rejection {
    return rejectionOf(decision, seconds, JSON_TYPE, jsonOf(decision, seconds, nowMs))
  }

  /** The text of the rule, where the quota of one rule alone refuses; undefined for what is not usual. */
  function usualText(decision: Decision): RuleText | undefined {
    const isUsual = decision.refusal === "quota" && decision.checks.length === 1
    return isUsual ? textOf(decision.policy) : undefined
  }

  function contentOf(decision: Decision, seconds: number | undefined): Content {
    const refusal = decision.refusal ?? "quota"
    const problem = PROBLEMS[refusal]
    const refusing = decision.checks.filter(isRefusing)
    const detail = problemDetail(refusal, refusing, seconds, largestCost)
    const message = problem.status === 429 ? spoken(textOf(decision.policy)?.message, seconds) : undefined
    return { problem, refusing, detail, message }
  }

  function jsonOf(decision: Decision, seconds: number | undefined, nowMs: () => number): string {
    const { problem, refusing, detail, message } = contentOf(decision, seconds)
    let body = `${problem.json},"detail":${JSON.stringify(detail)}`
    if (problem.status !== 400 && refusing.length > 0)
      body += `,"violated-policies":[${refusing.map(nameJson).join(",")}]`
    if (message !== undefined) body += message.json
    // What speaks of a time to wait is spoken only where there is one.
    if (message?.retry !== undefined)
      body += `,"retry":${message.retry(seconds as number, decision.retryAfterMs, nowMs)}`
    return `${body}}`
  }
}

function rejectionOf(
  decision: Decision,
  seconds: number | undefined,
  type: HeaderLine,
  body: string,
): Rejection {
  const { status } = PROBLEMS[decision.refusal ?? "quota"]
  const headers = [NO_STORE, type]
  return {
    status,
    headers: seconds === undefined ? headers : [["Retry-After", String(seconds)], ...headers],
    body,
  }
}

function isRefusing({ allowed, shadow }: PolicyCheck): boolean {
  return !allowed && !shadow
}

/** The message, unless it speaks of a time to wait and there is none. */
function spoken(message: Message | undefined, seconds: number | undefined): Message | undefined {
  return seconds === undefined && message?.retry !== undefined ? undefined : message
}

function textBody({ problem, refusing, detail, message }: Content): string {
  const policies =
    problem.status === 400 || refusing.length === 0
      ? ""
      : `: ${refusing.map(({ policy }) => policy).join(", ")}`
  return `${problem.title}${policies}\n${detail}\n${message === undefined ? "" : `${message.text}\n`}`
}

function ruleText({ name, windowMs, cost, most, rejectionMessage: text }: RejectionRule): RuleText {
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
    last: undefined,
    tellsInstant: tellsInstant(text),
  }
}
