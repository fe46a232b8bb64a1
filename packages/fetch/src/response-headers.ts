import type { Outcome } from "@sluice/core/adapters"

/** The headers that the limiters of a request have set so far, in the form that Node's own response would contain. */
const headersOf = new WeakMap<Request, Headers>()
/**
 * The headers that were added to a response. The headers are remembered, because apps may reuse a response without a
 * body.
 */
const given = new WeakMap<Response, Headers>()

/** Returns the headers for the response to this request, after this outcome. */
export function headersAfter({ removed, headers }: Outcome, request: Request): Headers {
  const all = headersOf.get(request) ?? new Headers()
  headersOf.set(request, all)
  for (const name of removed) all.delete(name)
  for (const [name, value] of headers) all.set(name, value)
  return all
}

/**
 * Adds headers to a response, but keeps the headers that the app has set. Returns the response itself if possible,
 * because a copy would lose the data that a framework stores on it. The headers of a redirect or of a fetched
 * response are immutable.
 */
export function addHeaders(response: Response, headers: Headers): Response {
  // A protocol switch (RFC 9110, section 15.2.2) is handled by the server, and cannot be copied.
  if (response.status === 101) return response
  const former = given.get(response)
  if (former === undefined || former === headers) {
    try {
      return addTo(response, headers)
    } catch {
      return addTo(copyOf(response), headers)
    }
  }
  // Copy the response, because it belongs to another request. The headers of one client must not be sent to another
  // client.
  const copy = copyOf(response)
  for (const name of former.keys()) copy.headers.delete(name)
  return addTo(copy, headers)
}

/**
 * Returns a response with the cookies of another response, and with those of its headers that the response does not
 * have. Returns a copy if there are any, because the app may reuse the response.
 */
export function withHeadersOf(other: Response, response: Response): Response {
  const added = [...other.headers]
  if (added.length === 0) return response
  const copy = copyOf(response)
  for (const [name, value] of added) {
    if (name === "set-cookie" || !copy.headers.has(name)) copy.headers.append(name, value)
  }
  return copy
}

function copyOf(response: Response): Response {
  return new Response(response.body, response)
}

function addTo(response: Response, headers: Headers): Response {
  for (const [name, value] of headers) {
    if (!response.headers.has(name)) response.headers.set(name, value)
  }
  given.set(response, headers)
  return response
}
