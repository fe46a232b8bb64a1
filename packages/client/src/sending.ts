/** The input of a fetch: a URL or a request. */
export type FetchInput = Parameters<typeof globalThis.fetch>[0]
/** The second argument of a fetch. */
export type FetchInit = NonNullable<Parameters<typeof globalThis.fetch>[1]>

/** The arguments of a fetch, and facts about its request. */
export interface SendableCall {
  /**
   * Calls the fetch. Copies a request with a body before each attempt except the last, because sending a request
   * consumes its body.
   */
  send(fetch: typeof globalThis.fetch, isLast: boolean): Promise<Response>
  /** The request without its body, for functions that inspect the request. */
  readonly head: Request
  /** The signal of the caller, or an empty array. */
  readonly signals: readonly AbortSignal[]
  /** Whether the body can be sent twice. A stream can be sent twice only as the body of a `Request`. */
  readonly isResendable: boolean
}

/**
 * Prepares the arguments of a fetch to be sent later. Copies the URL and the headers, because the caller may change
 * them before the call is sent.
 */
export function sendable(given: FetchInput, init: FetchInit): SendableCall {
  // A `Request` is a valid second argument, but its members are not own properties, so a spread would lose them.
  if (isRequest(init)) return sendable(new Request(given, init), {})
  const from = isRequest(given) ? given : undefined
  const input = from ?? String(given)
  const headers = init.headers && new Headers(init.headers)
  const described = { method: init.method ?? from?.method, headers: headers ?? from?.headers }
  const sent = headers ? { ...init, headers } : init
  const body = init.body ?? ""
  const signal = init.signal === undefined ? from?.signal : init.signal
  return {
    send: (fetch, isLast) => fetch(isLast || body !== "" || !from?.body ? input : from.clone(), sent),
    head: new Request(from?.url ?? String(given), described as RequestInit),
    signals: signal ? [signal] : [],
    isResendable: !(
      body instanceof ReadableStream ||
      (typeof body === "object" && Symbol.asyncIterator in body)
    ),
  }
}

function isRequest(value: unknown): value is Request {
  return typeof value === "object" && value !== null && "url" in value && "headers" in value
}
