import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect } from "vitest"
import { askAndHangUp } from "./ask.ts"
import { type Behaves, told } from "./stage.ts"

const RULE = { limit: 3, window: "1 minute", algorithm: "fixed-window" } as const
const never = (): Promise<never> => new Promise(() => undefined)

async function later<T>(value: T): Promise<T> {
  await nextTurn()
  return value
}

/** Waits much longer than it takes to call a handler. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await nextTurn()
}

/** Registers the behaviors of functions in the options if these functions return promises. */
export function awaiting(behaves: Behaves): void {
  describe("functions that return promises", () => {
    behaves("decide each request by the values", async ({ start, base, adapter }) => {
      const header = (request: object, name: string) => later(adapter.headerOf(request, name))
      const options = {
        ...{ ...base, ...RULE, name: "user", field: "user" },
        limit: async (request: object) => Number(await header(request, "x-limit")),
        cost: async (request: object) => Number((await header(request, "x-cost")) ?? 1),
        skip: async (request: object) => (await header(request, "x-user")) === "probe",
        match: async (request: object) => (await header(request, "x-free")) === undefined,
        fields: { user: (request: object) => header(request, "x-user") },
      }
      const client = await start({ mounts: [options], routes: [{ path: "/" }] })
      const rows: unknown[] = []
      for (const headers of [
        { "X-User": "ann", "X-Limit": "3", "X-Cost": "2" },
        { "X-User": "ann", "X-Limit": "3", "X-Cost": "2" },
        { "X-User": "ann", "X-Limit": "4", "X-Cost": "2" },
        { "X-User": "bob", "X-Limit": "1" },
        { "X-User": "bob", "X-Limit": "1", "X-Free": "yes" },
        { "X-User": "bob", "X-Limit": "1" },
        { "X-User": "probe" },
      ]) {
        const response = await client("/", { headers })
        rows.push([response.status, response.headers.ratelimit])
      }
      expect(rows).toEqual([
        [200, '"user";r=1;t=60'],
        [429, '"user";r=0;t=60'],
        [200, '"user";r=0;t=60'],
        [200, '"user";r=0;t=60'],
        [200, undefined],
        [429, '"user";r=0;t=60'],
        [200, undefined],
      ])
    })

    behaves(
      "answer 503 with Retry-After if the limit is not known in time",
      async ({ start, base, clock }) => {
        let asked = 0
        const limit = () => {
          asked++
          return never()
        }
        const client = await start({ mounts: [{ ...base, ...RULE, limit }], routes: [{ path: "/" }] })
        const answer = client("/")
        while (asked === 0) await nextTurn()
        clock.advance(1_000)
        const response = await answer
        expect([response.status, response.headers["retry-after"], told(response)]).toEqual([503, "1", []])
        expect(JSON.parse(response.body)).toMatchObject({
          type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
          "violated-policies": ["ip-1m"],
        })
      },
    )

    behaves(
      "take nothing from a client that hangs up meanwhile, whose handler does not run",
      async (stage) => {
        const { limited, clock } = stage
        let asked = 0
        let handled = 0
        const cost = () => (asked++ === 0 ? never() : 1)
        const client = await limited(
          { ...RULE, cost },
          { routes: [{ path: "/", handle: () => ({ status: 200, body: `${++handled}` }) }] },
        )
        const arrived = (async () => {
          while (asked === 0) await nextTurn()
        })()
        await askAndHangUp(client.url, "/", arrived)
        await turns()
        clock.advance(1_000)
        await turns()
        const response = await client("/")
        expect([response.status, response.headers.ratelimit, handled]).toEqual([200, '"ip-1m";r=2;t=59', 1])
      },
    )
  })
}
