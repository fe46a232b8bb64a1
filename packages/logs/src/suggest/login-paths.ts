/** Requests to a path before it was known to be a login, in the order of their times. */
export interface EarlierRequests {
  /** The path as rules match it. */
  readonly path: string
  readonly clients: readonly number[]
  readonly timesMs: readonly number[]
  readonly failed: number
}

/** Statuses of failed logins. */
const FAILED: ReadonlySet<number | undefined> = new Set([401, 403, 422])

/** True for the status of a failed login. */
export function isFailedLogin(status: number | undefined): boolean {
  return FAILED.has(status)
}

/** Number of failed requests after which a path may be a login. */
const FEWEST_FAILED = 20
/** Number of requests after which a path with too few failures is not a login. */
const MOST_EARLIER = 10_000
/** Bounds for logs in which every target is different. Each request takes about 16 bytes. */
const MOST_PATHS = 10_000
const MOST_REQUESTS = 2_000_000
const MOST_LOGINS = 20

/** A login must fail for several clients. Otherwise, one client could make any path look like a login. */
const FEWEST_FAILED_CLIENTS = 5

interface PathRequests {
  readonly clients: number[]
  readonly timesMs: number[]
  failed: number
  /** The first few clients whose requests failed. */
  readonly failedClients: Set<number>
}

/**
 * Finds paths that look like logins, because many POST requests fail. Stores the requests to a path until it is
 * decided whether the path is a login, so that a login is counted from its first request.
 */
export class LoginPaths {
  readonly #paths = new Map<string, PathRequests | "settled">()
  #requests = 0
  #logins = 0

  /** `settled` contains paths to ignore. */
  constructor(settled: readonly string[]) {
    for (const path of settled) this.#paths.set(path, "settled")
  }

  /** Records a POST request. If its path now looks like a login, returns all requests to the path so far. */
  add(url: string, client: number, atMs: number, status: number | undefined): EarlierRequests | undefined {
    const path = plainPath(url)
    if (path === undefined) return undefined
    const requests = this.#paths.get(path) ?? this.#start(path)
    if (requests === undefined || requests === "settled") return undefined
    requests.clients.push(client)
    requests.timesMs.push(atMs)
    this.#requests++
    if (isFailedLogin(status)) {
      requests.failed++
      if (requests.failedClients.size < FEWEST_FAILED_CLIENTS) requests.failedClients.add(client)
    }
    const isLikely = requests.failed >= FEWEST_FAILED && requests.failedClients.size >= FEWEST_FAILED_CLIENTS
    const isLogin = isLikely && this.#logins < MOST_LOGINS
    const isFull = requests.clients.length >= MOST_EARLIER || this.#requests >= MOST_REQUESTS
    if (!isLogin && !isFull) return undefined
    this.#paths.set(path, "settled")
    this.#requests -= requests.clients.length
    if (!isLogin) return undefined
    this.#logins++
    return { path, ...requests }
  }

  /** Removes paths with few failing clients, so that a flood of invented paths does not hide a login. */
  #makeRoom(): boolean {
    for (const [path, requests] of this.#paths) {
      if (requests === "settled" || requests.failedClients.size > 1) continue
      this.#paths.delete(path)
      this.#requests -= requests.clients.length
    }
    return this.#paths.size < MOST_PATHS
  }

  #start(path: string): PathRequests | undefined {
    if (this.#paths.size >= MOST_PATHS && !this.#makeRoom()) return undefined
    const requests: PathRequests = { clients: [], timesMs: [], failed: 0, failedClients: new Set() }
    // Copy the path, because it may be a part of a chunk of the log.
    this.#paths.set(Buffer.from(path, "latin1").toString("latin1"), requests)
    return requests
  }
}

/**
 * Returns the path of a target as rules compare it: in lower case, and without a slash at the end. Returns undefined
 * if the path contains characters that are special in patterns, or that rules decode.
 */
export function plainPath(url: string): string | undefined {
  const query = url.indexOf("?")
  const path = query === -1 ? url : url.slice(0, query)
  if (path.length > 200 || !/^(?:\/[\w.~-]+)+\/?$/.test(path)) return undefined
  return (path.endsWith("/") ? path.slice(0, -1) : path).toLowerCase()
}
