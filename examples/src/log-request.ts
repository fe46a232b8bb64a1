import type { IncomingMessage, ServerResponse } from "node:http"
import { type Decision, explainDecision, logFields } from "@sluice/core"

/** Writes a line to a log. */
export type WriteLine = (line: string) => void

/**
 * After the response to a request, writes a JSON line with the verdict of the limits, as pino-http does. Call this
 * function before the limits decide. `sluice rules replay` reads such lines, and compares the verdicts with its own.
 * Without `write`, this function does nothing.
 */
export function logRequest(
  write: WriteLine | undefined,
  { method, url, headers, socket }: IncomingMessage,
  response: ServerResponse,
  decisionOn: () => Decision | undefined,
): void {
  if (write === undefined) return
  const { remoteAddress } = socket
  const startedMs = performance.now()
  response.once("close", () => {
    const decision = decisionOn()
    // Fractions preserve the order of requests that arrive in the same millisecond.
    const endedMs = performance.now()
    const explanations = decision === undefined || decision.allowed ? [] : explainDecision(decision)
    const refusal = explanations.find(({ verdict }) => verdict === "refused")
    write(
      JSON.stringify({
        level: 30,
        time: performance.timeOrigin + endedMs,
        req: { method, url, headers: { "x-forwarded-for": headers["x-forwarded-for"] }, remoteAddress },
        res: { statusCode: response.statusCode },
        responseTime: endedMs - startedMs,
        ...(decision !== undefined && logFields(decision)),
        msg: refusal?.text ?? "request completed",
      }),
    )
  })
}
