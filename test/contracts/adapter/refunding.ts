import { once } from "node:events"
import type { Socket } from "node:net"
import type { Decision } from "@sluice/core"
import { describe, expect } from "vitest"
import { askAndHangUp } from "./ask.ts"
import type { Behaves } from "./stage.ts"

/** Registers the behaviors of `refundWhen`. */
export function refunding(behaves: Behaves): void {
  describe("refundWhen", () => {
    behaves("counts concurrent guesses before it refunds any of them", async ({ limited, clock }) => {
      let running = 0
      let most = 0
      let open = () => {}
      const gate = new Promise<void>((resolve) => {
        open = resolve
      })
      const client = await limited(
        { limit: 5, window: "1 minute", refundWhen: (_request, status) => status < 400 },
        {
          routes: [
            {
              path: "/",
              handle: async () => {
                most = Math.max(most, ++running)
                await gate
                running--
                return { status: 401, body: "wrong" }
              },
            },
          ],
        },
      )
      const guesses = Array.from({ length: 20 }, () =>
        client("/").then((response) => {
          // The last refusal lets the admitted requests continue.
          if (response.status === 429 && ++refused === 15) open()
          return response.status
        }),
      )
      let refused = 0
      expect((await Promise.all(guesses)).sort()).toEqual([
        ...Array.from({ length: 5 }, () => 401),
        ...Array.from({ length: 15 }, () => 429),
      ])
      expect(most).toBe(5)
      clock.advance(1)
      expect((await client("/")).status).toBe(429)
    })

    behaves("keeps the units of a client that hangs up before the response", async ({ limited }) => {
      const told: number[] = []
      const [arrival, arrived] = gate()
      const [answer, answered] = gate()
      let asked = 0
      const client = await limited(
        {
          limit: 1,
          window: "1 minute",
          refundWhen: (_request, status) => {
            told.push(status)
            return true
          },
        },
        {
          routes: [
            {
              path: "/",
              handle: async (request) => {
                if (asked++ > 0) return {}
                const { req, socket } = request as {
                  // Hono's context contains its request.
                  readonly req?: { readonly raw?: Request }
                  readonly socket: Socket
                }
                const gone = req?.raw === undefined ? once(socket, "close") : once(req.raw.signal, "abort")
                arrived()
                await gone
                setImmediate(answered)
                return {}
              },
            },
          ],
        },
      )
      await askAndHangUp(client.url, "/", arrival)
      await answer
      expect((await client("/")).status).toBe(429)
      expect(told).not.toContain(200)
    })

    behaves("refunds only requests for whose response it returns true", async ({ limited, adapter }) => {
      const told: [object, number][] = []
      const decisions: (Decision | undefined)[] = []
      const client = await limited(
        {
          limit: 2,
          window: "1 minute",
          refundWhen: (request, status) => {
            told.push([request, status])
            return status < 400
          },
        },
        {
          routes: [
            {
              path: "/",
              handle: (request) => {
                decisions.push(adapter.decisionOf(request))
                return { status: Number(adapter.headerOf(request, "x-answer")) }
              },
            },
          ],
        },
      )
      let asked = 0
      const answered = async (status: number) => {
        const response = await client("/", { headers: { "X-Answer": String(status) } })
        // The client may read the response before the server notices that the response has ended.
        asked++
        while (told.length < asked) await new Promise(setImmediate)
        return response.status
      }
      const rows = [200, 200, 201, 200, 401, 200, 200, 403]
      for (const status of rows) expect(await answered(status)).toBe(status)
      expect(await answered(200)).toBe(429)
      expect(told.map(([, status]) => status)).toEqual([...rows, 429])
      expect(decisions.map((decision) => decision?.remaining)).toEqual([1, 1, 1, 1, 1, 0, 0, 0])
      expect(adapter.decisionOf(told[0]?.[0] as object)).toBe(decisions[0])
    })
  })
}

function gate(): readonly [opened: Promise<void>, open: () => void] {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return [opened, open]
}
