import { InvalidOptionError } from "../ground/errors.ts"
import { FetchFacts, type FetchRequest, isFetchRequest } from "./fetch-facts.ts"
import type { RequestFacts } from "./request.ts"

/** The facts of a framework's request, as its adapter reads them; undefined where it is none of the framework's. */
export type FactsReader = (request: object) => RequestFacts | undefined

/** What the facts of a request are read by, whichever framework's it is. */
export class FactsReaders {
  readonly #readers: Set<FactsReader> = new Set()
  readonly #takesAnything: boolean

  /** `takesAnything`: also what is no object, such as a text, since `fields` of the app read it, or nobody does. */
  constructor(takesAnything: boolean) {
    this.#takesAnything = takesAnything
  }

  add(reader: FactsReader): void {
    this.#readers.add(reader)
  }

  /** The facts of a request; it is its own where no framework knows it. Throws InvalidOptionError for what is none. */
  read(request: unknown): RequestFacts {
    if (typeof request !== "object" || request === null) {
      if (!this.#takesAnything) throwNotARequest(request)
      return {}
    }
    for (const read of this.#readers) {
      const facts = read(request)
      if (facts !== undefined) return facts
    }
    return ownFacts(request)
  }
}

/** The facts that a request has itself. Its `headers` are absent if reading them throws, as they do where a page is rendered in advance. */
function ownFacts(request: object): RequestFacts {
  let isFetch: boolean
  try {
    isFetch = isFetchRequest(request)
  } catch {
    return withSocketAddress(Object.create(request, { headers: { value: undefined } }))
  }
  return isFetch ? new FetchFacts(request as FetchRequest) : withSocketAddress(request)
}

/** Node's own request keeps the address on its socket: without it all clients would be one. */
function withSocketAddress(request: RequestFacts & { readonly socket?: unknown }): RequestFacts {
  if (request.remoteAddress !== undefined) return request
  const { remoteAddress } = (request.socket ?? {}) as RequestFacts
  return remoteAddress === undefined
    ? request
    : Object.create(request, { remoteAddress: { value: remoteAddress } })
}

/**
 * Throws InvalidOptionError for what is no request: a key by itself, as other rate limiters take it. All of them would be one
 * client.
 */
function throwNotARequest(request: unknown): never {
  // Not shown: it may be the key of an API, which has no place in a log.
  const given = request === null ? "null" : `a ${typeof request}`
  throw new InvalidOptionError([
    {
      path: "request",
      message: request === undefined ? "there is none" : `${given} is not a request`,
      accepted:
        'an object such as { remoteAddress: "192.0.2.7" }, or {} where nothing is known of it; ' +
        "a text or a number where fields have a function that reads it",
    },
  ])
}
