import { StoreUnavailableError } from "@sluice/core"
import { type OptionCheck, problemAt, requireOptions, textOf } from "@sluice/core/kit"
import type { RedisCommands } from "../commands.ts"
import { failureOf, titleOf } from "../failure.ts"

/** The options of {@link redisOverHttp}. */
export interface RedisOverHttpOptions {
  /** The address of the REST API, such as `https://my-database.upstash.io`. */
  readonly url: string | URL
  /** The token of the REST API. It must permit `EVALSHA` and `EVAL`, so a read-only token is not enough. */
  readonly token: string
}

/** A client of Redis that sends each command as an HTTP request. It has no connection to open or to close. */
export interface RedisOverHttp {
  /** The server's host, for messages. */
  readonly host: string
  /** Sends a command once, and never again. Rejects with an Error whose message begins with the code of Redis' error. */
  command(args: readonly string[]): Promise<unknown>
}

/**
 * Milliseconds after which a request without a response is given up. Callers stop waiting much earlier. A later
 * response still shows the time of the server, and that units were granted without effect.
 */
const LONGEST_MS = 30_000
/** Characters after which the rest of a response is not read. Redis' replies are shorter, but a wrong URL may send more. */
const MOST_READ = 2 ** 24
/** Number of characters that messages quote of a response. */
const MOST_SHOWN = 200

const CHECKS: Readonly<Record<keyof RedisOverHttpOptions, OptionCheck>> = {
  url(value) {
    const isUrl = (typeof value === "string" || value instanceof URL) && URL.canParse(String(value))
    if (isUrl && /^https?:\/\/[^/@]+(\/|$)/.test(new URL(value).href)) return undefined
    const message = `${hidden(value)} is not an HTTP URL without credentials`
    return { message, accepted: "the address of the REST API: https://my-database.upstash.io" }
  },
  token(value) {
    if (typeof value === "string" && /^[\x21-\x7e]+$/.test(value)) return undefined
    return { message: `${hidden(value)} is not a token`, accepted: "the token of the REST API" }
  },
}

/**
 * Creates a client of Redis for runtimes without connections, such as Cloudflare Workers. Speaks the REST form of
 * Upstash: each command is a POST request with a JSON array. Uses the global `fetch`, does not follow redirects, and
 * never sends a command again, because Redis would count it twice.
 * @example
 * ```ts
 * import { redisOverHttp, redisStore } from "@sluice/redis"
 *
 * const client = redisOverHttp({
 *   url: process.env.UPSTASH_REDIS_REST_URL ?? "https://my-database.upstash.io",
 *   token: process.env.UPSTASH_REDIS_REST_TOKEN ?? "token",
 * })
 * const store = redisStore({ client })
 * ```
 * @throws {@link InvalidOptionError}
 */
export function redisOverHttp(options: RedisOverHttpOptions): RedisOverHttp {
  const { url, token } = options ?? {}
  const missing = [
    ...(url === undefined ? problemAt("url", url, CHECKS.url) : []),
    ...(token === undefined ? problemAt("token", token, CHECKS.token) : []),
  ]
  requireOptions("redisOverHttp", options, CHECKS, missing)
  const { host } = new URL(url)
  // Next.js may cache responses to equal requests.
  const settings = { method: "POST", cache: "no-store", redirect: "manual" } as const
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }
  const exchange = async (body: string): Promise<readonly [body: string, status: number]> => {
    const signal = AbortSignal.timeout(LONGEST_MS)
    const response = await fetch(url, { ...settings, headers, body, signal })
    return [await bodyOf(response), response.status]
  }
  const command = async (args: readonly string[]): Promise<unknown> => {
    const [body, status] = await exchange(JSON.stringify(args)).catch((error: unknown) => {
      throw failureOf(withReason(error), titleOf(host))
    })
    return resultOf(body, status, { host, token })
  }
  return {
    host,
    command(args) {
      const sent = command(args)
      untilSettled(sent)
      return sent
    },
  }
}

/** Describes a value for messages, without a password or token that it may contain. */
function hidden(value: unknown): string {
  if (value === "") return "an empty string"
  return typeof value === "string" ? "a string" : value instanceof URL ? "a URL" : textOf(value)
}

/** Returns the commands of the client. */
export function redisOverHttpCommands({ host, command }: RedisOverHttp): RedisCommands {
  return {
    isCluster: false,
    isPerRequest: true,
    isReady: () => true,
    isOpen: () => true,
    evalsha: (sha, keys, args) => command(["EVALSHA", sha, String(keys.length), ...keys, ...args]),
    eval: (script, keys, args) => command(["EVAL", script, String(keys.length), ...keys, ...args]),
    del: (keys) => command(["DEL", ...keys]),
    nodeOf: () => host,
    reconnect: () => undefined,
  }
}

/** Returns the body of a response. Stops reading a body that is too long, which is then not valid JSON. */
async function bodyOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ""
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    if (text.length > MOST_READ) break
  }
  return text
}

/** Returns the error of `fetch` with its reason, such as ECONNREFUSED, which Node.js shows only in the cause. */
function withReason(error: unknown): unknown {
  if (!(error instanceof Error && error.cause instanceof Error)) return error
  const { message, code }: NodeJS.ErrnoException = error.cause
  return new Error(`${error.message}: ${message || code}`, { cause: error })
}

/**
 * Returns the result in the body of a response. Throws Redis' own error as an Error that begins with its code. Any other
 * error is a StoreUnavailableError, which is never mistaken for an error of Redis, although a proxy's response may
 * contain a word such as NOSCRIPT.
 */
function resultOf(
  body: string,
  status: number,
  { host, token }: { readonly host: string; readonly token: string },
): unknown {
  const { result, error } = parsed(body)
  const isGood = status === 200
  if (isGood && typeof error !== "string" && result !== undefined) return result
  // A server or proxy may quote the request's headers.
  const clean = (typeof error === "string" ? error : body).replaceAll(token, "…")
  const shown = clean.length > MOST_SHOWN ? `${clean.slice(0, MOST_SHOWN)}…` : clean
  if (typeof error !== "string") {
    throw new StoreUnavailableError(
      `${titleOf(host)} sent an invalid response: HTTP ${status}, ${JSON.stringify(shown)}.`,
      { kind: "invalid-answer" },
    )
  }
  // Redis' own errors have the status 400.
  if (isGood || status === 400) throw new Error(shown)
  throw new StoreUnavailableError(`${titleOf(host)} failed: ${shown} (HTTP ${status}).`)
}

function parsed(body: string): { readonly result?: unknown; readonly error?: unknown } {
  try {
    return JSON.parse(body) ?? {}
  } catch {
    return {}
  }
}

/** Keeps a Cloudflare Worker running until the promise has settled, even if the response to its client has ended. */
function untilSettled(promise: Promise<unknown>): void {
  const worker = process.getBuiltinModule("cloudflare:workers") as
    | { waitUntil?(promise: Promise<unknown>): void }
    | undefined
  worker?.waitUntil?.(promise.catch(() => undefined))
}
