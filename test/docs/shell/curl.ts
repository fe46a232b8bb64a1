/** The request of a curl line. */
export interface CurlRequest {
  /** One URL, or one for each number of a range: "http://localhost:3000/?n=[1-6]". */
  readonly urls: readonly string[]
  readonly init: RequestInit & { readonly headers: Readonly<Record<string, string>> }
}

/**
 * Returns the request of a curl line, which may use only the curl options that documents use.
 * @throws Error for any other word, and for a request to another machine
 */
export function parseCurl([, ...words]: readonly string[]): CurlRequest {
  const headers: Record<string, string> = {}
  let method: string | undefined
  let body: string | undefined
  let url: string | undefined
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (["-i", "-s", "-si"].includes(word)) continue
    if (word === "-X") method = words[++at]
    else if (word === "-d") body = words[++at]
    else if (word === "-H") {
      const [name = "", value = ""] = (words[++at] ?? "").split(": ")
      headers[name.toLowerCase()] = value
    } else if (url === undefined && /^http:\/\/(localhost|127\.0\.0\.1):\d+(\/|$)/.test(word)) url = word
    else throw new Error(`curl's ${word} is not known here`)
  }
  if (url === undefined) throw new Error("curl asks nobody")
  const asked = url
  const [range, first = "1", last = "1"] = /\[(\d+)-(\d+)\]/.exec(asked) ?? []
  const numbers = Array.from({ length: Number(last) - Number(first) + 1 }, (_, n) =>
    String(Number(first) + n),
  )
  return {
    urls: numbers.map((n) => (range === undefined ? asked : asked.replace(range, n))),
    init: {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers,
      ...(body !== undefined && { body }),
    },
  }
}
