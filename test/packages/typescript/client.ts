import { type GateStatus, type PacedFetch, type PacedOptions, PaceError, paced } from "@sluice/client"
import { createLimiter } from "@sluice/core"

const limiter = createLimiter<{ readonly key: string }>({
  limit: 10,
  window: "1 second",
  field: "key",
  fields: { key: (call) => call.key },
})
const options: PacedOptions = {
  key: (request) => new URL(request.url).host,
  maxWaitMs: 10_000,
  retries: 5,
  idempotent: ({ method }) => method !== "POST",
  limit: { limit: 100, window: "1 minute" },
  share: { acquire: (key, signal) => limiter.acquire({ key }, signal && { signal }) },
}
export const api: PacedFetch = paced(fetch, options)
/** Any function that accepts a fetch also accepts a paced fetch. */
export const asFetch: typeof fetch = paced()
export const stop: () => void = api.on("refused", ({ key, waitMs }) => console.log(key, waitMs?.toFixed()))
export const waiting: number = api.status().reduce((sum: number, gate: GateStatus) => sum + gate.waiting, 0)

export async function orders(signal: AbortSignal): Promise<unknown> {
  try {
    const request = new Request("https://api.example.com/orders")
    return (await api(request, { signal, pace: { maxWaitMs: 0 } })).json()
  } catch (error) {
    if (error instanceof PaceError && error.code === "SLUICE_PACE_WAIT_TOO_LONG") return error.retryAfterMs
    throw error
  }
}

// @ts-expect-error a misspelled option is not valid
paced(fetch, { maxWait: 10_000 })
// @ts-expect-error the options come second
paced({ maxWaitMs: 10_000 })
// @ts-expect-error only the listed events exist
api.on("done", () => undefined)
// @ts-expect-error a call has no separate limit
void api("https://api.example.com", { pace: { limit: { limit: 1, window: 1 } } })
