import { manualClock } from "@sluice/core/testing"
import { buildSchema, type GraphQLSchema } from "graphql"
import { createHandler } from "graphql-http/lib/use/http"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createExecute } from "./graphql.ts"

const schema: GraphQLSchema = buildSchema(`
  type Query { user: User, users(first: Int): [User!]!, broken: User! }
  type User { name: String, friends(first: Int): [User!]! }
`)
const users = (count: number): object[] => Array.from({ length: count }, () => user)
const user = { name: "Ann", friends: ({ first }: { first: number }) => users(Math.min(first, 2)) }
const rootValue = {
  user,
  users: ({ first = 1 }) => users(Math.min(first, 3)),
  broken() {
    throw new Error("The database does not respond.")
  },
}

const clock = manualClock()
let server: Served

beforeEach(async () => {
  clock.resetAll()
  const handler = createHandler({
    ...{ schema, rootValue, execute: createExecute({ clock, trustedProxies: ["loopback"] }) },
    context: ({ raw: { headers, socket } }) => ({ headers, remoteAddress: socket.remoteAddress }),
  })
  server = await serve(handler)
})
afterEach(() => server.close())

interface Answer {
  readonly data?: unknown
  readonly errors?: readonly { message: string; extensions?: { cost: number; retryAfterMs: number | null } }[]
}
async function ask(query: string, variables?: object, from = "203.0.113.1"): Promise<Answer> {
  const response = await fetch(server.url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-forwarded-for": from },
    body: JSON.stringify({ query, variables }),
  })
  return (await response.json()) as Answer
}
/** Returns true if a query for `fields` fields is admitted. */
async function canAsk(fields: number): Promise<boolean> {
  // The query costs 1 + 1 × content, and the content costs 1 + first × 1.
  return (await ask(`{ user { friends(first: ${fields - 2}) { name } } }`)).errors === undefined
}
const rejection = (cost: number, retryAfterMs: number | null) => ({
  errors: [{ message: "rate-limited", extensions: { cost, retryAfterMs } }],
})

describe("the GraphQL recipe", () => {
  it("refuses a query that exceeds the whole limit, without running it", async () => {
    // 1 + 100 × (1 + 100 × 1)
    expect(await ask("{ users(first: 100) { friends(first: 100) { name } } }")).toEqual(
      rejection(10_101, null),
    )
    expect(await canAsk(1_000)).toBe(true)
  })

  it("charges the fields that a query returns instead of the fields that it requests", async () => {
    // The query requests 901 fields but returns only 4: users, and three names.
    expect((await ask("{ users(first: 900) { name } }")).data).toEqual({
      users: Array(3).fill({ name: "Ann" }),
    })
    expect(await canAsk(997)).toBe(false)
    expect(await canAsk(996)).toBe(true)
  })

  it("charges more than the estimate if a list without a requested size contains several items", async () => {
    await ask("{ users { name } }")
    expect(await canAsk(999)).toBe(false)
    expect(await canAsk(998)).toBe(true)
  })

  it("admits a query again after exactly the stated wait", async () => {
    const big = `{ ${Array.from({ length: 250 }, (_, at) => `u${at}: users(first: 3) { name }`).join(" ")} }`
    expect((await ask(big)).errors).toBeUndefined()
    const waitMs = (await ask(big)).errors?.[0]?.extensions?.retryAfterMs ?? 0
    expect((await ask(big, {}, "203.0.113.2")).errors).toBeUndefined()
    clock.advance(waitMs - 1)
    expect(await ask(big)).toEqual(rejection(1_000, 1))
    clock.advance(1)
    expect((await ask(big)).errors).toBeUndefined()
  })

  it("cannot be evaded with fragments, aliases or variables", async () => {
    const fragment = "fragment All on Query { users(first: 600) { name } }"
    expect(await ask(`{ ...All a: users(first: 600) { name } } ${fragment}`)).toEqual(rejection(1_202, null))
    const variable = "query ($n: Int) { users(first: $n) { name } }"
    expect(await ask(variable, { n: 1_000 })).toEqual(rejection(1_001, null))
    const negative = "{ users(first: -2000) { name } a: users(first: 999) { name } }"
    expect(await ask(negative)).toEqual(rejection(1_002, null))
    const huge = "friends(first: 2147483647)"
    expect(await ask(`{ user { ${huge} { ${huge} { ${huge} { name } } } } }`)).toEqual(
      rejection(1_000_000, null),
    )
  })

  it("charges one field for a query that fails, and nothing for an invalid query", async () => {
    expect((await ask("{ broken { name } }")).errors?.[0]?.message).toBe("The database does not respond.")
    expect((await ask("{ nonsense }")).data).toBeUndefined()
    expect((await ask("{ user")).data).toBeUndefined()
    expect(await canAsk(1_000)).toBe(false)
    expect(await canAsk(999)).toBe(true)
  })
})
