import { SluiceStore, type SluiceStoreOptions } from "@sluice/express-rate-limit-store"
import express, { type Express, type RequestHandler } from "express"
import { type Options, type RateLimitInfo, type RateLimitRequestHandler, rateLimit } from "express-rate-limit"
import { onTestFinished } from "vitest"
import { listening } from "../servers/listening.ts"

/** A response of an app, with values that the client and the app's handlers receive. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** A running app. */
export interface Served {
  readonly url: string
  /** Sends a request for each path, one after the other. */
  ask(...paths: readonly string[]): Promise<Answer[]>
  /** Sends requests for "/", one after the other, and returns their statuses. */
  statuses(count: number): Promise<number[]>
}

export interface LimitedApp extends Served {
  readonly limit: RateLimitRequestHandler
  readonly store: SluiceStore
  /** The errors and warnings that express-rate-limit or the limiter behind the store has logged. */
  readonly logged: readonly string[]
}

/**
 * Starts an app with express-rate-limit on a SluiceStore. The app responds with `req.rateLimit`, or with the status of
 * the path `/status/404`. `more` adds routes.
 */
export async function limitedApp(
  options: Partial<Options>,
  counting: SluiceStoreOptions = {},
  more: (app: Express) => void = () => {},
): Promise<LimitedApp> {
  const logged: string[] = []
  const log = (...all: unknown[]): void => void logged.push(all.map(String).join(" "))
  const store = new SluiceStore(counting)
  onTestFinished(() => store.shutdown())
  const limit = rateLimit({ windowMs: 60_000, logger: { warn: log, error: log }, store, ...options })
  const app = express().use(limit)
  more(app)
  app.get("/status/:code", (req, res) => void res.status(Number(req.params.code)).end())
  app.use((req, res) => void res.json(infoOn(req)))
  return { limit, store, logged, ...(await serve(app)) }
}

/** Serves an app for the current test. */
export async function serve(app: RequestHandler | Express): Promise<Served> {
  const url = await listening(app as never)
  const ask = async (...paths: readonly string[]): Promise<Answer[]> => {
    const answers: Answer[] = []
    for (const path of paths) {
      const response = await fetch(url + path)
      answers.push({ status: response.status, headers: response.headers, text: await response.text() })
    }
    return answers
  }
  return { url, ask, statuses: async (n) => (await ask(...Array(n).fill("/"))).map(({ status }) => status) }
}

/** Returns the information that express-rate-limit has stored on the request. */
export function infoOn(req: object): RateLimitInfo {
  return (req as { readonly rateLimit: RateLimitInfo }).rateLimit
}
