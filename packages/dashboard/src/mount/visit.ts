import type { IncomingHttpHeaders } from "node:http"
import type { Viewer } from "./viewers.ts"

/** A request for the page or its data, in the form that all kinds of servers have in common. */
export interface Visit {
  readonly method: string
  /** The path below the mount, such as "/events". Empty for the mount itself without a trailing slash. */
  readonly path: string
  /** The last segment of the mount's own path, for relative redirects. */
  readonly mountName: string
  readonly headers: IncomingHttpHeaders
  /** The address of the socket's peer. Undefined if the server does not provide it. */
  readonly address: string | undefined
  /** The version of HTTP, such as "1.1". */
  readonly httpVersion: string
  /** Returns the body as parsed JSON. Rejects with {@link CallRefused} if it is too large, or if it is not JSON. */
  readonly body: () => Promise<unknown>
  /** The framework's own request. */
  readonly request: unknown
}

/** The response to a visit. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The complete body. */
  readonly body: Buffer
  /** The viewer to connect to the response, which then remains open. Undefined for a response with a body. */
  readonly viewer?: Viewer
}

/** The refusal of a request, which becomes the response. The message is the body. */
export class CallRefused extends Error {
  readonly status: number
  readonly headers: Answer["headers"]

  constructor(status: number, message: string, headers: Answer["headers"] = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

const MOST_BYTES = 4_096

/** Reads a body of at most 4 kB as JSON. */
export async function readJson(chunks: AsyncIterable<Uint8Array>): Promise<unknown> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const chunk of chunks) {
    length += chunk.length
    if (length > MOST_BYTES) throw new CallRefused(413, "The body is larger than 4 kB.")
    parts.push(chunk)
  }
  return JSON.parse(Buffer.concat(parts).toString())
}

/**
 * Splits the path of a request into the name of the mount and the path below it. `originalUrl` is the request's own
 * URL, and `url` is what the framework has left of it. `mount` is the option `path`, which applies if the framework
 * leaves the whole URL. Returns undefined if the path is outside of the mount.
 */
export function locate(
  originalUrl: string,
  url: string,
  mount: string | undefined,
): Pick<Visit, "path" | "mountName"> | undefined {
  const [whole, rest] = [originalUrl, url].map((each) => each.replace(/[?#].*$/s, "")) as [string, string]
  // For the mount without a trailing slash, frameworks leave "/".
  const isExact = rest === "/" && !whole.endsWith("/")
  const base = mount ?? (isExact ? whole : whole.slice(0, whole.length - rest.length))
  if (whole !== base && !whole.startsWith(`${base}/`)) return undefined
  return { path: whole.slice(base.length), mountName: base.slice(base.lastIndexOf("/") + 1) }
}
