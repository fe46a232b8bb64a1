import type { Board } from "./board.ts"
import { pageFiles } from "./page-files.ts"
import type { Viewers } from "./viewers.ts"
import { type Answer, BodyTooLarge, type Visit } from "./visit.ts"

/** The headers of every response. */
const SECURITY = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; " +
    "base-uri 'none'; form-action 'none'; trusted-types 'none'; require-trusted-types-for 'script'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
}

/** The header that a search must have. A page of another origin cannot send it, because no response allows that. */
const SEARCH_HEADER = "x-sluice-dashboard"

/** Answers visits, whatever server they come from. */
export class Site {
  readonly #board: Board
  readonly #viewers: Viewers

  constructor(board: Board, viewers: Viewers) {
    this.#board = board
    this.#viewers = viewers
  }

  /** Returns the response to a visit. `isAllowed` decides whether the visitor may see the page. */
  async answer(visit: Visit, isAllowed: () => Promise<boolean>): Promise<Answer> {
    if (isOfOtherSite(visit) || !(await isAllowed())) return text(403, "Forbidden")
    const { path, method, mountName } = visit
    const isSearch = path === "/find"
    const file = pageFiles().get(path)
    const exists = file !== undefined || ["", "/overview.json", "/events", "/find"].includes(path)
    if (!exists) return text(404, "Not found")
    const allowed = isSearch ? ["POST"] : ["GET", "HEAD"]
    if (!allowed.includes(method)) return text(405, "Method not allowed", { allow: allowed.join(", ") })
    // Without "./", a mount with a parameter might be a URL with a scheme.
    if (path === "") return text(302, "", { location: `./${mountName}/` })
    if (file !== undefined) return this.#file(file, visit)
    if (isSearch) return this.#search(visit)
    if (path === "/overview.json") return json(this.#board.json())
    return this.#events(method)
  }

  #file({ etag, type, body, gzipped }: PageFileOf, { headers }: Visit): Answer {
    const caching = { "cache-control": "no-cache", etag, vary: "accept-encoding" }
    if (headers["if-none-match"] === etag) return answer(304, caching)
    const isGzip = /\bgzip\b/.test(String(headers["accept-encoding"]))
    const encoding = isGzip ? { "content-encoding": "gzip" } : {}
    return answer(200, { ...caching, ...encoding, "content-type": type }, isGzip ? gzipped : body)
  }

  async #search({ headers, body }: Visit): Promise<Answer> {
    if (headers[SEARCH_HEADER] === undefined) return text(403, `The header ${SEARCH_HEADER} is missing`)
    try {
      const { key } = Object(await body())
      if (typeof key === "string") return json(Buffer.from(JSON.stringify(this.#board.find(key))))
    } catch (error) {
      if (error instanceof BodyTooLarge) return text(413, "The body is larger than 1 kB")
    }
    return text(400, 'The body must be JSON: {"key": "192.0.2.7"}')
  }

  #events(method: string): Answer {
    // Without "no-transform", middleware that compresses responses would hold updates back.
    const headers = {
      "content-type": "text/event-stream",
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    }
    if (method === "HEAD") return answer(200, headers)
    const viewer = this.#viewers.enter()
    if (viewer === undefined)
      return text(503, "Too many pages are open, or the server closes", { "retry-after": "30" })
    return { ...answer(200, headers), viewer }
  }
}

/**
 * True if a page of another origin sends the request, except by a link. Such a page must not read the data with the
 * visitor's cookies or address, even if a middleware of the app allows all origins (CORS). Browsers set both headers.
 */
function isOfOtherSite({ headers }: Visit): boolean {
  const { "sec-fetch-site": site = "none", "sec-fetch-mode": mode } = headers
  return site !== "same-origin" && site !== "none" && mode !== "navigate"
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
