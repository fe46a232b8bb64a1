import { type Clock, InvalidOptionError, type Limiter, SluiceError } from "@sluice/core"
import type { FoundCounters } from "../page/found-counter.ts"
import type { VisitorRole } from "./access.ts"
import type { Board } from "./board.ts"
import type { Changes } from "./changes.ts"
import { type Clients, reasonOf } from "./clients.ts"
import type { Operators } from "./operators.ts"
import { tooMany } from "./pace.ts"
import { pageFiles } from "./page-files.ts"
import type { Viewers } from "./viewers.ts"
import { type Answer, CallRefused, type Visit } from "./visit.ts"

/** The headers of every response. */
const SECURITY = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; " +
    "base-uri 'none'; form-action 'none'; trusted-types 'none'; require-trusted-types-for 'script'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
}

/** The header that a search or change must have. A form of another origin cannot send it. */
const OWN_HEADER = "x-sluice-dashboard"

const OTHER_SITE =
  "A page of another origin seems to send this request. If a proxy changes the header Host, let it forward the original one."

/** The parts of the site. */
export interface SiteParts {
  /** Returns the role of a visitor, or undefined for a visitor who may not see the page. */
  readonly roleOf: (visit: Visit) => Promise<VisitorRole | undefined>
  readonly board: Board
  readonly viewers: Viewers
  readonly clients: Clients
  readonly operators: Operators
  readonly changes: Changes
  /** Bounds the searches and changes of all visitors. */
  readonly pace: Limiter
  readonly clock: Clock
}

/** Answers visits, whatever server they come from. */
export class Site {
  readonly #parts: SiteParts

  constructor(parts: SiteParts) {
    this.#parts = parts
  }

  /** Returns the response to a visit. */
  async answer(visit: Visit): Promise<Answer> {
    if (isOfOtherSite(visit)) return text(403, OTHER_SITE)
    const role = await this.#parts.roleOf(visit)
    if (role === undefined) return text(403, "Forbidden")
    const { path, method, mountName } = visit
    const file = pageFiles().get(path)
    const isPost = ["/find", "/change"].includes(path)
    const exists = file !== undefined || isPost || ["", "/overview.json", "/events"].includes(path)
    if (!exists) return text(404, "Not found")
    const allowed = isPost ? ["POST"] : ["GET", "HEAD"]
    if (!allowed.includes(method)) return text(405, "Method not allowed", { allow: allowed.join(", ") })
    // Without "./", a mount with a parameter might be a URL with a scheme.
    if (path === "") return text(302, "", { location: `./${mountName}/` })
    if (file !== undefined) return this.#file(file, visit)
    if (isPost) return this.#post(visit, role)
    if (path === "/overview.json") return json(this.#parts.board.json())
    return this.#events(method)
  }

  #file({ etag, type, body, gzipped }: PageFileOf, { headers }: Visit): Answer {
    const caching = { "cache-control": "no-cache", etag, vary: "accept-encoding" }
    if (headers["if-none-match"] === etag) return answer(304, caching)
    const isGzip = /\bgzip\b/.test(String(headers["accept-encoding"]))
    const encoding = isGzip ? { "content-encoding": "gzip" } : {}
    return answer(200, { ...caching, ...encoding, "content-type": type }, isGzip ? gzipped : body)
  }

  async #post(visit: Visit, role: VisitorRole): Promise<Answer> {
    try {
      const body = await this.#bodyOf(visit)
      const result =
        visit.path === "/find" ? this.#find(body, role) : this.#parts.changes.make(visit, role, body)
      return json(Buffer.from(JSON.stringify(await result)))
    } catch (error) {
      if (error instanceof CallRefused) return text(error.status, error.message, error.headers)
      const status = error instanceof InvalidOptionError ? 400 : error instanceof SluiceError ? 503 : 500
      return text(status, reasonOf(error))
    }
  }

  /** Returns the members of the body, if the page itself has sent it. */
  async #bodyOf({ headers, address, body }: Visit): Promise<Readonly<Record<string, unknown>>> {
    if (headers[OWN_HEADER] === undefined) throw new CallRefused(403, `The header ${OWN_HEADER} is missing.`)
    if (!/^application\/json\b/i.test(headers["content-type"] ?? ""))
      throw new CallRefused(415, "The content type must be application/json.")
    const turn = await this.#parts.pace.decide({ ...(address !== undefined && { remoteAddress: address }) })
    if (!turn.allowed) throw tooMany("searches and changes", turn)
    try {
      return Object(await body())
    } catch (error) {
      throw error instanceof CallRefused ? error : new CallRefused(400, "The body is not JSON.")
    }
  }

  async #find({ key }: Readonly<Record<string, unknown>>, role: VisitorRole): Promise<FoundCounters> {
    if (typeof key !== "string") throw new CallRefused(400, 'The body must be JSON: {"key": "192.0.2.7"}')
    const { clients, operators, clock } = this.#parts
    const found = await clients.find(key)
    return { atMs: clock.now(), operator: operators.status(role), ...found }
  }

  #events(method: string): Answer {
    // Without "no-transform", middleware that compresses responses would hold updates back.
    const headers = {
      "content-type": "text/event-stream",
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    }
    if (method === "HEAD") return answer(200, headers)
    const viewer = this.#parts.viewers.enter()
    if (viewer === undefined)
      return text(503, "Too many pages are open, or the server closes", { "retry-after": "30" })
    return { ...answer(200, headers), viewer }
  }
}

/**
 * True if a page of another origin sends the request, except by a link. Such a page must not read data or change clients
 * with the visitor's cookies or address, even if a middleware of the app allows all origins (CORS). Browsers set these
 * headers. They leave out the first two if the page has a plain HTTP address, and the third for most GET requests.
 */
function isOfOtherSite({ headers, method }: Visit): boolean {
  const { "sec-fetch-site": site, "sec-fetch-mode": mode, origin, host = headers[":authority"] } = headers
  if (mode === "navigate" && method !== "POST") return false
  if (site !== undefined) return site !== "same-origin" && site !== "none"
  return origin !== undefined && origin.replace(/^https?:\/\//, "") !== host
}

type PageFileOf = NonNullable<ReturnType<ReturnType<typeof pageFiles>["get"]>>

function answer(status: number, headers: Answer["headers"], body: Buffer = Buffer.alloc(0)): Answer {
  return { status, headers: { "cache-control": "no-store", ...SECURITY, ...headers }, body }
}

function text(status: number, body: string, headers: Answer["headers"] = {}): Answer {
  return answer(status, { "content-type": "text/plain; charset=utf-8", ...headers }, Buffer.from(body))
}

function json(body: Buffer): Answer {
  return answer(200, { "content-type": "application/json" }, body)
}
