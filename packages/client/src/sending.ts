/** The input of a fetch: a URL or a request. */
export type FetchInput = Parameters<typeof globalThis.fetch>[0]
/** The second argument of a fetch. */
export type FetchInit = NonNullable<Parameters<typeof globalThis.fetch>[1]>

/** The arguments of a fetch, and facts of its request. */
export interface SendableCall {
  /** Calls the fetch. A request with a body is copied, unless it is the last attempt, because sending it takes its body. */
  send(fetch: typeof globalThis.fetch, isLast: boolean): Promise<Response>
  /** The request without its body, for functions that look at it. */
  readonly head: Request
  /** The signal of the caller, if there is one. */
  readonly signals: readonly AbortSignal[]
  /** Whether the body can be sent twice. A stream cannot, unless a request holds it. */
  readonly isResendable: boolean
}

/**
 * Prepares the arguments of a fetch to be sent later. The URL and the headers are copied, because their caller may change
 * them in the meantime.
 */
export function sendable(given: FetchInput, init: FetchInit): SendableCall {
  // A request is a valid second argument, but its members are not its own properties.
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
