import type { Dialect, Reading } from "../reading.ts"
import { counters } from "./counters.ts"

/**
 * Reads the remaining requests and tokens from the headers of a language model API. OpenAI sends headers such as
 * `x-ratelimit-remaining-tokens`, and Anthropic sends headers such as `anthropic-ratelimit-tokens-remaining`. The
 * tokens of a call are unknown before it is sent. Therefore, if 30 % of the tokens remain, 30 % of the requests count
 * as remaining.
 */
export function modelTokens(nameOf: (field: string, unit: string) => string): Dialect {
  return (headers, nowMs) => {
    const [requests = [], ...tokens] = ["requests", "tokens", "input-tokens", "output-tokens"].map((unit) =>
      // OpenAI sends -1 if it does not know the number.
      headers.get(nameOf("remaining", unit)) === "-1"
        ? []
        : counters((field) => nameOf(field, unit))(headers, nowMs),
    )
    return [...requests, ...tokens.flat().map((reading) => sharedOut(reading, requests[0]?.quota))]
  }
}

function sharedOut(reading: Reading, requests: number | undefined): Reading {
  const { remaining, quota = remaining } = reading
  if (requests === undefined) return reading
  return {
    ...reading,
    ...{ remaining: Math.floor((remaining / Math.max(quota, 1)) * requests), quota: requests },
  }
}
