import { InvalidOptionError } from "../ground/errors.ts"
import { FetchFacts, type FetchRequest, isFetchRequest } from "./fetch-facts.ts"
import { NamedClient } from "./named-client.ts"
import type { RequestFacts } from "./request.ts"

/**
 * A function that reads the facts of a framework's request. The function returns undefined for a request of another
 * framework.
 */
export type FactsReader = (request: object) => RequestFacts | undefined

/** The facts readers of all mounted frameworks. Together they read the facts of any request. */
export class FactsReaders {
  readonly #readers: Set<FactsReader> = new Set()
  readonly #takesAnything: boolean

  /**
   * With `takesAnything`, a request need not be an object. For example, the request may be a string that the app's
   * `fields` read.
   */
  constructor(takesAnything: boolean) {
    this.#takesAnything = takesAnything
  }

  add(reader: FactsReader): void {
    this.#readers.add(reader)
  }

  /**
   * Returns the facts of a request. If no framework's reader recognizes the request, its own members are the facts.
   * Throws InvalidOptionError for an invalid request.
   */
  read(request: unknown): RequestFacts {
    if (typeof request !== "object" || request === null) {
      if (!this.#takesAnything) throwNotARequest(request)
      return {}
    }
    for (const read of this.#readers) {
      const facts = read(request)
      if (facts !== undefined) return facts
    }
    // Otherwise the request would count as one of nobody.
    if (request instanceof NamedClient) throwNamed()
    return ownFacts(request)
  }

  /**
   * Reads the facts of the client that a call changes. Throws if only options are passed, because a call such as
   * `reset({ rules })` does not identify a client.
   */
  readClient(request: unknown): RequestFacts {
    const names = Object.keys(request ?? {})
    if (names.length > 0 && names.every((name) => CALL_OPTIONS.has(name))) throwNotARequest(names)
    return this.read(request)
  }
}

/** Names of options that a call takes after the request. */
const CALL_OPTIONS: ReadonlySet<string> = new Set(["rules", "for"])

/**
 * Returns the facts in the request's own members. If reading `headers` throws, returns no headers. Frameworks throw
 * an error there when they prerender a page.
 */
function ownFacts(request: object): RequestFacts {
  let isFetch: boolean
  try {
    isFetch = isFetchRequest(request)
  } catch {
    return withSocketAddress(Object.create(request, { headers: { value: undefined } }))
  }
  return isFetch ? new FetchFacts(request as FetchRequest) : withSocketAddress(request)
}

/**
 * Adds the address of the request's socket. The address of Node's own request is only in its socket. Without the
 * address, all clients would share one counter.
 */
function withSocketAddress(request: RequestFacts & { readonly socket?: unknown }): RequestFacts {
  if (request.remoteAddress !== undefined) return request
  const { remoteAddress } = (request.socket ?? {}) as RequestFacts
  return remoteAddress === undefined
    ? request
    : Object.create(request, { remoteAddress: { value: remoteAddress } })
}

/** Throws InvalidOptionError for a client that is named instead of read from a request. */
function throwNamed(): never {
  throw new InvalidOptionError([
    {
      path: "request",
      message: "is a client that limiter.client() returned, which has sent no request",
      accepted: "a request; a named client only in peek, explain, reset, block and unblock",
    },
  ])
}

/**
 * Throws InvalidOptionError for an invalid request. For example, other rate limiters accept a bare key instead of a
 * request. Without this error, all keys would count as one client.
 */
function throwNotARequest(request: unknown): never {
  if (Array.isArray(request)) {
    const message = `has only options of a call: ${request.join(", ")}`
    throw new InvalidOptionError([
      { path: "request", message, accepted: "the request first, and then the options" },
    ])
  }
  // The message does not show the value, because it may be an API key, which must not be logged.
  const given = request === null ? "null" : `a ${typeof request}`
  throw new InvalidOptionError([
    {
      path: "request",
      message: request === undefined ? "is missing" : `${given} is not a request`,
      accepted:
        'an object such as { remoteAddress: "192.0.2.7" }, or {} if nothing is known about it; ' +
        'a string or a number if "fields" has a function that reads it',
    },
  ])
}
