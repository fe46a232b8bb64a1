import type { Block } from "./blocks.ts"

/**
 * A request that is sent several times, and the expected statuses. Without statuses, any status below 500 is
 * accepted.
 */
interface Ask {
  readonly method: string
  readonly path: string
  readonly statuses: readonly number[]
}

const ROUTE = /\b(?:app|router)\.(get|post|put|patch|delete)\("(\/[^"]*)"/g

/**
 * Returns the requests that a comment lists after its prelude: `<!-- run: express, /search 200*3 429, POST /login 200
 * -->`. Without a list, returns `/` and each route that the block registers, once.
 * @throws Error when the list is invalid
 */
export function parseAsks({ run = "", text }: Block): Ask[] {
  const [, ...told] = run.split(",").map((part) => part.trim())
  if (told.length > 0) return told.map(parseAsk)
  const routes = [...text.matchAll(ROUTE)].map(([, method = "", path = ""]) => ({
    method: method.toUpperCase(),
    path: path.replace(/:\w+/g, "1"),
    statuses: [],
  }))
  return [{ method: "GET", path: "/", statuses: [] }, ...routes]
}

function parseAsk(text: string): Ask {
  const [, method = "GET", path, statuses] = /^(?:([A-Z]+) )?(\/\S*)((?: \d{3}(?:\*\d+)?)+)$/.exec(text) ?? []
  if (path === undefined || statuses === undefined)
    throw new Error(`"${text}" is not like "GET /search 200*3 429"`)
  const repeated = statuses
    .trim()
    .split(" ")
    .flatMap((each) => {
      const [status, times = "1"] = each.split("*")
      return Array<number>(Number(times)).fill(Number(status))
    })
  return { method, path, statuses: repeated }
}

/** Sends the requests in order. Returns one line for each request with a wrong response. */
export async function ask(url: string, asks: readonly Ask[]): Promise<string[]> {
  const wrong: string[] = []
  for (const { method, path, statuses } of asks) {
    const got: number[] = []
    for (let times = 0; times < Math.max(1, statuses.length); times++) {
      got.push((await fetch(url + path, { method })).status)
    }
    const isRight =
      statuses.length === 0 ? got.every((status) => status < 500) : String(got) === String(statuses)
    const instead = statuses.length === 0 ? "" : `, not ${inShort(statuses)}`
    if (!isRight) wrong.push(`${method} ${path}: ${inShort(got)}${instead}`)
  }
  return wrong
}

/** Returns the statuses in the form of a comment: "200*3 429". */
function inShort(statuses: readonly number[]): string {
  const parts = String(statuses).match(/(\d+)(?:,\1)*/g) ?? []
  return parts
    .map((part) => part.split(","))
    .map(([status, ...more]) => (more.length === 0 ? status : `${status}*${more.length + 1}`))
    .join(" ")
}
