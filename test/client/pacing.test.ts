import { paced } from "@sluice/client"
import { expect, it } from "vitest"
import { startLimitedApi } from "../servers/limited-api.ts"

// A small version of bench:client, which counts responses and refusals, and measures no times.

const LIMIT = 50
const CALLS = 45
const WORKERS = 10

it("two clients that share a limit get all responses, are hardly ever refused, and neither starves", async () => {
  const api = await startLimitedApi({ limit: LIMIT, window: "2 seconds" })
  try {
    const callers = [caller(api.url), caller(api.url)]
    // Otherwise, the client that learns first would get most of the first window.
    for (const { send } of callers) await send()
    const others = await Promise.race(
      callers.map(async (own) => {
        await own.run()
        return callers.filter((each) => each !== own).map(({ statuses }) => statuses.length)
      }),
    )
    // A client that starves receives only what the other client leaves of the first window.
    expect(Math.min(...others)).toBeGreaterThan(2 * (LIMIT - CALLS))
    await Promise.all(callers.map((each) => each.run()))
    for (const { statuses } of callers) expect(statuses).toEqual(Array(CALLS).fill(200))
    // At most one percent of the calls, or two calls, may be refused.
    expect(api.refused).toBeLessThanOrEqual(2)
  } finally {
    await api.close()
  }
})

/** Creates a client whose workers each send one call after the other. */
function caller(url: string) {
  const api = paced(fetch)
  const statuses: number[] = []
  let sent = 0
  async function send(): Promise<void> {
    sent++
    const response = await api(url)
    await response.arrayBuffer()
    statuses.push(response.status)
  }
  async function work(): Promise<void> {
    while (sent < CALLS) await send()
  }
  let ran: Promise<unknown> | undefined
  const run = (): Promise<unknown> => {
    ran ??= Promise.all(Array.from({ length: WORKERS }, work))
    return ran
  }
  return { statuses, send, run }
}
