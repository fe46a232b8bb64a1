import { mustBe, requireValue } from "../ground/option-checks.ts"
import { isUnits } from "../ground/policy.ts"
import { show } from "../ground/show.ts"

/** A response of fetch, supertest, axios or Fastify's `inject`. */
export interface TestResponse {
  /** The status in a response of fetch, supertest or axios. */
  readonly status?: number | undefined
  /** The status in a response of `inject`. */
  readonly statusCode?: number | undefined
  /** Fetch's `Headers`, or an object whose names are in lower case. */
  readonly headers: object
}

const REQUEST = mustBe("a function", "() => fetch(url)", (value) => typeof value === "function")
const ADMITTED = mustBe("a number of requests", "0 or a positive whole number", isUnits)
const RESPONSE = mustBe("a response", "an object with status and headers", (value) => {
  const { status, statusCode, headers } = (value ?? {}) as Partial<TestResponse>
  return typeof (status ?? statusCode) === "number" && typeof headers === "object"
})

/**
 * Sends requests one after another, and expects that the app's limiter admits exactly `admitted` requests, and refuses
 * the next. A request counts as admitted if its status is below 500 and not 429, so a response such as 404 counts, too.
 * The refusal must have the status 429, a valid `Retry-After`, and no other wait in its RateLimit headers. Returns the
 * refusal. Needs no test runner.
 *
 * Use a `manualClock`, and call its `resetAll` before each test. Otherwise, a new window may begin between two
 * requests, or an earlier test may have used units.
 * @example
 * ```ts
 * import { expectLimited, manualClock } from "@sluice/core/testing"
 * import { rateLimit } from "@sluice/fetch"
 *
 * const clock = manualClock()
 * const limit = rateLimit({ limit: 5, window: "1 minute", clientAddress: () => "192.0.2.7", clock })
 * const get = limit.wrap(() => new Response("hello"))
 *
 * const refusal = await expectLimited(() => get(new Request("http://localhost/"), undefined), 5)
 * const seconds = refusal.headers.get("retry-after") // "61"
 * ```
 * @throws an Error that says what came instead, and {@link InvalidOptionError} for an invalid argument
 */
export async function expectLimited<Response extends TestResponse>(
  request: () => Response | PromiseLike<Response>,
  admitted: number,
): Promise<Response> {
  requireValue("request", request, REQUEST)
  requireValue("admitted", admitted, ADMITTED)
  const expected = `Expected ${admitted} admitted requests and then a refusal`
  for (let sent = 1; sent <= admitted; sent++) {
    const response = await responseTo(request)
    const status = statusOf(response)
    if (status === 429) {
      const wait = `Retry-After: ${headerOf(response, "retry-after") ?? "none"}`
      throw new Error(`${expected}, but request ${sent} was refused with status 429 (${wait}).`)
    }
    if (status >= 500) throw new Error(`${expected}, but request ${sent} failed with status ${status}.`)
  }
  const refusal = await responseTo(request)
  const status = statusOf(refusal)
  if (status !== 429) {
    throw new Error(`${expected} with status 429, but the status of request ${admitted + 1} is ${status}.`)
  }
  requireSameWait(refusal)
  return refusal
}

/** Returns the response, even if the client rejects with an error that contains it, as axios does for a 429. */
async function responseTo<Response extends TestResponse>(
  request: () => Response | PromiseLike<Response>,
): Promise<Response> {
  try {
    return await request()
  } catch (error) {
    const { response } = (error ?? {}) as { readonly response?: Response }
    if (RESPONSE(response) === undefined) return response as Response
    throw error
  }
}

function statusOf(response: TestResponse): number {
  requireValue("request()", response, RESPONSE)
  return response.status ?? (response.statusCode as number)
}

/** Throws unless the refusal says when to retry, and no RateLimit header contradicts. */
function requireSameWait(refusal: TestResponse): void {
  const wait = headerOf(refusal, "retry-after")
  if (wait === undefined || !/^[1-9]\d*$/.test(wait)) {
    throw new Error(`Expected a refusal with a Retry-After of whole seconds, but it is ${show(wait)}.`)
  }
  const list = headerOf(refusal, "ratelimit")
  // The limits that refused have no units left. Other limits of the app may have some.
  const waits = [...(list ?? "").matchAll(/;[ra]=0(?:;[tw]=(\d+))?/g)].map(([, seconds = wait]) => seconds)
  if (list !== undefined && !waits.includes(wait)) {
    throw new Error(
      `Expected no remaining units for ${wait} seconds (Retry-After), but RateLimit is ${list}.`,
    )
  }
  const remaining = headerOf(refusal, "ratelimit-remaining") ?? headerOf(refusal, "x-ratelimit-remaining")
  if ((remaining ?? "0") !== "0") {
    throw new Error(`Expected a refusal with 0 remaining units, but the RateLimit headers say ${remaining}.`)
  }
}

function headerOf({ headers }: TestResponse, name: string): string | undefined {
  const { get } = headers as Partial<Headers>
  const value: unknown =
    typeof get === "function" ? get.call(headers, name) : (headers as Record<string, unknown>)[name]
  return value === undefined || value === null ? undefined : String(value)
}
