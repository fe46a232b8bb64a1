/**
 * Returns the default key of a request: its origin, and a fingerprint of its credentials. Calls with different
 * credentials have different quotas.
 */
export function keyOf({ url, headers }: Pick<Request, "url" | "headers">): string {
  const { origin } = new URL(url)
  const credentials = headers.get("authorization") ?? headers.get("x-api-key")
  return credentials === null ? origin : `${origin}#${fingerprint(credentials)}`
}

/**
 * Returns the key of the response's origin if a redirect has led to an origin other than the request's. Does not call
 * the app's function `key`, because the app has not chosen that origin.
 */
export function keyAfterRedirect({ redirected, url }: Response, request: Request): string | undefined {
  if (!redirected || !URL.canParse(url) || new URL(url).origin === new URL(request.url).origin)
    return undefined
  const headers = new Headers(request.headers)
  // A fetch does not send this header to another origin (WHATWG Fetch, HTTP-redirect fetch).
  headers.delete("authorization")
  return keyOf({ url, headers })
}

/**
 * Returns a 64-bit fingerprint of a string, from two FNV-1a hashes, so that keys in logs and errors do not reveal
 * credentials.
 */
function fingerprint(text: string): string {
  return [0x811c9dc5, 0x01000193]
    .map((seed) => {
      let hash = seed
      for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
      return hash.toString(36)
    })
    .join("")
}
