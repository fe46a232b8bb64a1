/** The response to a call over HTTP. */
export interface Posted {
  readonly status: number
  readonly headers: Headers
  /** The body, which is JSON. */
  readonly body: Readonly<Record<string, unknown>>
}

/** Calls a method at its path. Sends a string as the body unchanged, and any other value as JSON. */
export async function post(
  { http }: { readonly http: string },
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Posted> {
  const response = await fetch(http + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Posted["body"],
  }
}
