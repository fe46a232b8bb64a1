/** The response to a search or a change. */
export interface Posted<Value> {
  /** Absent if the request failed. */
  readonly value?: Value
  /** Why the request failed. */
  readonly problem: string
  /** The status of the response. 0 if there is none. */
  readonly status: number
}

/** Sends a search or a change to the server, with the token of an operator if there is one. Never rejects. */
export async function post<Value>(path: "find" | "change", body: object, token = ""): Promise<Posted<Value>> {
  // The server may have made the change, although its response is missing.
  const unknown = path === "change" ? " The change may have been made. Search again." : ""
  const headers = {
    "content-type": "application/json",
    "x-sluice-dashboard": path,
    ...(token !== "" && { "x-sluice-token": token }),
  }
  try {
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })
    const { ok, status, headers: received } = response
    if (ok) return { value: await response.json(), problem: "", status }
    // A proxy responds with its own page.
    const isOurs = received.get("content-type")?.startsWith("text/plain") === true
    return {
      problem: isOurs ? await response.text() : `The server responds with ${status}.${unknown}`,
      status,
    }
  } catch {
    return { problem: `The server does not respond.${unknown}`, status: 0 }
  }
}
