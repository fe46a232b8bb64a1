import { type Answer, readAnswer } from "./answer.ts"
import type { PaceListeners } from "./events.ts"
import type { Gate } from "./gate.ts"
import type { ParsedPacedOptions } from "./options.ts"
import { PaceError } from "./pace-error.ts"
import { readProblem } from "./problem.ts"
import { backoffMs, hasNotConnected, isIdempotent } from "./retries.ts"
import { acquired } from "./share.ts"
import { type PacedCall, watch } from "./watch.ts"

/** A call with what decides about its attempts. */
export interface Attempted {
  readonly gate: Gate
  readonly key: string
  readonly call: PacedCall
  /** The request without its body. */
  readonly head: Request
  /** How often it may be sent again. */
  readonly retries: number
  /** Sends it. `isLast` tells that it is not sent again. */
  readonly send: (isLast: boolean) => Promise<Response>
}

/**
 * Sends a call, and sends it again as long as that is allowed and may help. Resolves with the last response, which may
 * be a refusal. Rejects with the error of the last attempt, the reason of a signal or {@link PaceError}.
 */
export async function attempts(
  attempted: Attempted,
  { share, idempotent }: ParsedPacedOptions,
  events: PaceListeners,
): Promise<Response> {
  const { key, call, gate, head, retries, send } = attempted
  gate.budget.earn()
  /** What the attempt before has got. The caller gets it if there cannot be another one. */
  let before: { readonly response?: Response; readonly error?: unknown } | undefined
  for (let attempt = 0; ; attempt++) {
    const isLast = attempt >= retries
    let sent: number
    try {
      sent = await entered(attempted, share)
    } catch (error) {
      const isRefused = error instanceof PaceError && error.code !== "SLUICE_PACE_CLOSED"
      if (before?.response !== undefined && isRefused) return before.response
      discard(before?.response)
      throw before !== undefined && isRefused ? before.error : error
    }
    discard(before?.response)
    let response: Response
    try {
      response = await send(isLast)
    } catch (error) {
      gate.failed(sent)
      const isSafe = !isLast && hasNotConnected(error) && (idempotent ?? isIdempotent)(head) === true
      if (!(isSafe && gate.budget.take() && (await pause(call, attempt)))) throw error
      before = { error }
      continue
    }
    const answer = readAnswer(response)
    gate.answered(sent, answer)
    if (!answer.isRefused) return response
    // A refused call was not processed, unless the server may have failed in the middle.
    const isSafe = response.status === 503 ? isIdempotent : () => true
    // A promise of false must not repeat the call.
    const mayRepeat = !isLast && (idempotent ?? isSafe)(head) === true
    const isRetried = await isWorthwhile(attempted, response, answer, mayRepeat, attempt)
    events.emit("refused", { key, status: response.status, waitMs: answer.waitMs, isRetried })
    if (!isRetried || (answer.waitMs === undefined && !(await pause(call, attempt)))) return response
    before = { response }
  }
}

/** Resolves with the number of the call once its gate and, if there are several processes, all of them let it go. */
async function entered({ key, gate, call }: Attempted, share: ParsedPacedOptions["share"]): Promise<number> {
  const sent = await gate.enter(call)
  try {
    if (share !== undefined) await acquired(share, key, gate, call)
  } catch (error) {
    gate.failed(sent)
    throw error
  }
  return sent
}

/** Frees the connection of a refusal that the caller does not get. */
function discard(response: Response | undefined): void {
  void response?.body?.cancel().catch(() => {})
}

/** Reads what a refusal says about another attempt. Resolves with true if there may be one, and takes it off the budget. */
async function isWorthwhile(
  { gate, call }: Attempted,
  response: Response,
  { waitMs, shouldRetry }: Answer,
  mayRepeat: boolean,
  attempt: number,
): Promise<boolean> {
  const reading = readProblem(response).then((problem) => {
    gate.detail = problem.detail
    return problem
  })
  const isTold = waitMs === undefined ? shouldRetry === true : shouldRetry !== false
  if (!mayRepeat || !isTold || gate.whyNot(call) !== undefined) return false
  const longerMs = (await reading).waitMs(attempt)
  if (longerMs > (waitMs ?? 0)) gate.blockFor(longerMs)
  return gate.whyNot(call) === undefined && gate.budget.take()
}

/** Waits without blocking the gate. False if the call may not wait that long. Rejects with the reason of a signal. */
function pause(call: PacedCall, attempt: number): Promise<boolean> {
  const ms = backoffMs(attempt)
  const isOver = new Error("the pause is over")
  return new Promise((resolve, reject) => {
    if (ms > call.waitLeftMs) return resolve(false)
    call.waitLeftMs -= ms
    const give = (reason: unknown): void => (reason === isOver ? resolve(true) : reject(reason))
    watch({ ...call, waitLeftMs: ms }, () => isOver, give)
  })
}
