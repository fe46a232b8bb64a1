import type { PaceListeners } from "./events.ts"
import type { Gate } from "./gate.ts"
import type { ParsedPacedOptions } from "./options.ts"
import { PaceError } from "./pace-error.ts"
import { readProblem } from "./problem.ts"
import { type ResponseLimits, readLimits, SAYS_NOTHING } from "./response-limits.ts"
import { backoffMs, hasNotConnected, isIdempotent } from "./retries.ts"
import { acquired } from "./share.ts"
import { type PacedCall, throwIfAborted, watch } from "./watch.ts"

/** A call, with everything that is needed to send it. */
export interface AttemptedCall {
  readonly gate: Gate
  /** Returns the gate for the origin of a response. After a redirect, this may be the gate of another origin. */
  readonly gateOf: (response: Response) => Gate
  readonly call: PacedCall
  /** The request without its body. */
  readonly head: Request
  /** Number of times that the request may be sent again. */
  readonly retries: number
  /** Sends the request. `isLast` is true if the call will not be sent again. */
  readonly send: (isLast: boolean) => Promise<Response>
}

/**
 * Sends a call, and retries it while retries are allowed and may succeed. Resolves with the last response, which may
 * be a refusal. Rejects with the error of the last attempt, the reason of a signal or {@link PaceError}.
 */
export async function attempts(
  attempted: AttemptedCall,
  { share, idempotent }: ParsedPacedOptions,
  events: PaceListeners,
): Promise<Response> {
  const { call, gate, head, retries, send } = attempted
  /** The outcome of the previous attempt. The caller gets this outcome if no further attempt is possible. */
  let before: { readonly response?: Response; readonly error?: unknown } | undefined
  /**
   * The gate of another origin that refused the previous attempt. The next attempt will be redirected to the same
   * origin.
   */
  let beyond: Gate | undefined
  for (let attempt = 0; ; attempt++) {
    const isLast = attempt >= retries
    let sent: number
    let sentBeyond = 0
    try {
      if (beyond !== undefined) sentBeyond = await beyond.enter(call)
      sent = await entered(attempted, share)
    } catch (error) {
      if (sentBeyond > 0) beyond?.failed(sentBeyond)
      const isRefused = before !== undefined && error instanceof PaceError
      if (isRefused && before?.response !== undefined) return before.response
      discard(before?.response)
      throw isRefused ? before?.error : error
    }
    discard(before?.response)
    if (before === undefined) gate.budget.earn()
    let response: Response
    try {
      response = await send(isLast)
    } catch (error) {
      gate.failed(sent)
      beyond?.failed(sentBeyond)
      const isSafe = !isLast && hasNotConnected(error) && (idempotent ?? isIdempotent)(head) === true
      if (!(isSafe && gate.budget.take() && (await pause(call, attempt)))) throw error
      before = { error }
      beyond = undefined
      continue
    }
    // A fetch in a test may return a value that is not a complete response.
    if (typeof response?.headers?.get !== "function") {
      gate.failed(sent)
      beyond?.failed(sentBeyond)
      return response
    }
    const limits = readLimits(response)
    const teller = attempted.gateOf(response)
    let waitMs = gate.answered(sent, teller === gate ? limits : SAYS_NOTHING)
    if (teller !== gate) {
      if (before === undefined) teller.budget.earn()
      waitMs = teller.heard(sent, limits)
    }
    // Report the failure only now, because that releases the next call, which must wait if this call was refused.
    beyond?.failed(sentBeyond)
    if (!limits.isRefused) return response
    // A refused call was not processed, unless the server failed while processing it, or redirected it.
    const isSafe = response.status === 503 || response.redirected ? isIdempotent : () => true
    // Compare with true, because `idempotent` may return a promise, which must not cause a retry.
    const mayRepeat = !isLast && (idempotent ?? isSafe)(head) === true
    const isRetried =
      (await isWorthwhile(attempted, teller, response, { ...limits, waitMs }, mayRepeat, attempt)) &&
      (waitMs !== undefined || (await pause(call, attempt)))
    events.emit("refused", {
      ...{ key: teller.key, status: response.status },
      ...{ waitMs: limits.waitMs, isRetried },
    })
    if (!isRetried) return response
    before = { response }
    beyond = teller === gate ? undefined : teller
  }
}

/** Resolves with the number of the call when both its gate and the option `share` allow the call. */
async function entered({ gate, call }: AttemptedCall, share: ParsedPacedOptions["share"]): Promise<number> {
  if (share !== undefined) {
    // A blocked call would take a permit that it cannot use, so reject it first. A call that may not wait at all may
    // still leave immediately.
    const error = gate.whyNot(call)
    if (error !== undefined && call.waitLeftMs > 0) throw error
    await acquired(share, gate, call)
  }
  return gate.enter(call)
}

/** Frees the connection of a refusal that is not passed to the caller. */
function discard(response: Response | undefined): void {
  void response?.body?.cancel().catch(() => {})
}

/**
 * Reads from a refusal whether another attempt may succeed. Resolves with true if so, and subtracts the attempt from
 * the budget. `teller` is the gate that has processed the refusal.
 */
async function isWorthwhile(
  { gate, call }: AttemptedCall,
  teller: Gate,
  response: Response,
  { waitMs, shouldRetry }: ResponseLimits,
  mayRepeat: boolean,
  attempt: number,
): Promise<boolean> {
  const sinceMs = performance.now()
  const mayWait = (): boolean => [gate, teller].every((each) => each.whyNot(call) === undefined)
  const reading = readProblem(response, call.waitLeftMs).then((problem) => {
    teller.detail = problem.detail
    return problem
  })
  const hasAdvice = waitMs === undefined ? shouldRetry === "true" : shouldRetry !== "false"
  if (!mayRepeat || !hasAdvice || !mayWait()) return false
  const longerMs = (await reading).waitMs(attempt)
  call.waitLeftMs -= performance.now() - sinceMs
  if (longerMs > (waitMs ?? 0)) teller.blockFor(longerMs)
  return mayWait() && teller.budget.take()
}

/** The first and the longest pause after failed connections. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [200, 20_000]

/**
 * Waits without blocking the gate. Resolves with false if the call may not wait that long. Rejects with the reason of
 * a signal.
 */
function pause(call: PacedCall, attempt: number): Promise<boolean> {
  const ms = backoffMs(attempt, FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
  return new Promise((resolve, reject) => {
    throwIfAborted(call)
    if (ms > call.waitLeftMs) return resolve(false)
    call.waitLeftMs -= ms
    // The reason is undefined if the pause has ended, because a signal always has a reason.
    const give = (reason: unknown): void => (reason === undefined ? resolve(true) : reject(reason))
    watch({ ...call, waitLeftMs: ms }, () => undefined, give)
  })
}
