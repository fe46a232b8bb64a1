import { inRange } from "./reading.ts"

/** The contents of the body of a refusal. */
export interface ProblemAdvice {
  /** The explanation in words. */
  readonly detail?: string | undefined
  /**
   * Returns the minimum wait before the n-th attempt after a refusal, in milliseconds, counting from 0. Returns 0 if
   * the body contains no advice.
   */
  waitMs(attempt: number): number
}

const LARGEST_BYTES = 65_536
/** A body that takes longer is ignored, so that a stalled server does not delay calls. */
const LONGEST_READ_MS = 1_000

/**
 * The advised jitter lengthens a wait by a share of at most this time. Half of a month would be two weeks in which
 * the client does not use its new units.
 */
const JITTERED_S = 3_600

const NOTHING: ProblemAdvice = { waitMs: () => 0 }

/**
 * Reads a problem document (RFC 9457), with the retry advice of a Sluice server in its member `retry`. Reads at most
 * 64 kB, for at most a second or `mostMs`. Reads a copy, because the caller may need the body. The connection is free
 * once the body has been read. Never rejects, because a body that cannot be read contains no advice.
 */
export async function readProblem(response: Response, mostMs: number): Promise<ProblemAdvice> {
  try {
    const { detail, rejection, retry } = JSON.parse(
      await textOf(response.clone(), Math.min(mostMs, LONGEST_READ_MS)),
    )
    const message = [rejection, detail].find((text) => typeof text === "string")
    return { detail: message?.slice(0, 500), waitMs: (attempt) => adviceMs(retry ?? {}, attempt) }
  } catch {
    return NOTHING
  }
}

interface Advice {
  readonly kind?: unknown
  readonly afterSeconds?: unknown
  readonly initialDelaySeconds?: unknown
  readonly multiplier?: unknown
  readonly maxDelaySeconds?: unknown
  readonly jitter?: unknown
}

function adviceMs(advice: Advice, attempt: number): number {
  if (advice.kind !== "exponential-backoff") return inRange(Number(advice.afterSeconds) * 1000)
  const { initialDelaySeconds, multiplier, maxDelaySeconds, jitter } = advice
  const grown = Number(initialDelaySeconds) * Number(multiplier) ** attempt
  const seconds = Math.min(grown, Number(maxDelaySeconds))
  const jittered = seconds + Math.min(seconds, JITTERED_S) * Math.random() * Number(jitter)
  return inRange(jittered * 1000)
}

async function textOf({ body }: Response, mostMs: number): Promise<string> {
  const reader = body?.getReader()
  if (reader === undefined) return ""
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), mostMs)
  const decoder = new TextDecoder()
  let text = ""
  try {
    for (let bytes = 0; bytes < LARGEST_BYTES; ) {
      const { done, value } = await reader.read()
      if (done) return text + decoder.decode()
      bytes += value.byteLength
      text += decoder.decode(value, { stream: true })
    }
  } finally {
    clearTimeout(timer)
    void reader.cancel().catch(() => {})
  }
  return ""
}
