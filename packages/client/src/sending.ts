/** The input of a fetch: a URL or a request. */
export type FetchInput = Parameters<typeof globalThis.fetch>[0]
/** The second argument of a fetch. */
export type FetchInit = NonNullable<Parameters<typeof globalThis.fetch>[1]>

/** Returns the request without its body, which is not read: for functions that look at a request. */
export function headOf(input: FetchInput, { method, headers }: FetchInit): Request {
  const from = isRequest(input) ? input : undefined
  return new Request(from?.url ?? (input as string | URL), {
    method: method ?? from?.method ?? "GET",
    headers: headers ?? from?.headers ?? {},
  })
}

/** Whether the body can be sent twice. A stream cannot, because it is gone after the first time. */
export function isResendable(input: FetchInput, { body }: FetchInit): boolean {
  if (body === undefined || body === null) return !isRequest(input) || !input.bodyUsed
  return typeof body !== "object" || !(body instanceof ReadableStream || Symbol.asyncIterator in body)
}

/** Returns the input for one of several attempts. A request with a body is copied, because sending it takes its body. */
export function copyOf(input: FetchInput, { body }: FetchInit): FetchInput {
  return isRequest(input) && input.body !== null && (body ?? undefined) === undefined ? input.clone() : input
}

/** Returns the signal of the caller, if there is one. */
export function signalsOf(input: FetchInput, { signal }: FetchInit): AbortSignal[] {
  const own = signal ?? (isRequest(input) ? input.signal : undefined)
  return own === undefined ? [] : [own]
}

function isRequest(input: FetchInput): input is Request {
  return typeof input === "object" && "url" in input && "headers" in input
}
