import type { Decision } from "@sluice/core"
import { describe, expect } from "vitest"
import type { Behaves, Client, Stage } from "./stage.ts"

/** Registers the behaviors of throttling: which requests are admitted above the limit, and what their clients see. */
export function throttling(behaves: Behaves): void {
  describe("a throttle", () => {
    behaves(
      "that is soft by 5 percent admits and marks exactly 25 requests above a limit of 500",
      async (stage) => {
        const { client, decisions } = await start(stage, { kind: "soft", percent: 5 })
        // Take the first 490 units in one request, and check the rest one by one.
        expect((await client("/", costing(490))).status).toBe(200)
        for (let left = 9; left >= -25; left--) {
          const { status, headers } = await client("/")
          expect(status).toBe(200)
          expect(headers["ratelimit-policy"]).toBe('"soft";q=500;w=60')
          expect(headers.ratelimit).toContain(`"soft";r=${Math.max(0, left)};`)
        }
        const { status, headers } = await client("/")
        expect([status, headers.ratelimit]).toEqual([429, `"soft";r=0;t=${headers["retry-after"]}`])
        // The refused request does not reach the handler.
        expect(decisions.map(({ overLimit }) => overLimit)).toEqual([
          ...Array<boolean>(11).fill(false),
          ...Array<boolean>(25).fill(true),
        ])
        expect(decisions.map(({ remaining }) => remaining)).toEqual([
          ...[10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
          ...Array<number>(25).fill(0),
        ])
      },
    )

    behaves(
      "that is elastic admits units above the limit only while there is spare capacity",
      async (stage) => {
        let isSpare = true
        const throttle = { kind: "elastic", ceiling: 600, signal: () => isSpare } as const
        const { client, decisions } = await start(stage, throttle)
        expect((await client("/", costing(500))).status).toBe(200)
        expect((await client("/", costing(50))).status).toBe(200)
        isSpare = false
        expect((await client("/")).status).toBe(429)
        isSpare = true
        expect((await client("/", costing(50))).status).toBe(200)
        expect((await client("/")).status).toBe(429)
        expect(decisions.map(({ overLimit }) => overLimit)).toEqual([false, true, true])
      },
    )
  })
}

const costing = (units: number) => ({ headers: { "X-Cost": String(units) } })

/**
 * Starts an app with a limit of 500 per minute. Returns a client, and the decisions that the handler finds on its
 * requests.
 */
async function start(
  { start, base, adapter }: Stage,
  throttle: { readonly kind: "soft"; readonly percent: number } | ElasticThrottle,
): Promise<{ client: Client; decisions: Decision[] }> {
  const decisions: Decision[] = []
  const cost = (request: object) => Number(adapter.headerOf(request, "x-cost") ?? 1)
  const client = await start({
    mounts: [{ ...base, name: "soft", limit: 500, window: "1 minute", throttle, cost }],
    routes: [
      {
        path: "/",
        handle(request) {
          decisions.push(adapter.decisionOf(request) as Decision)
          return {}
        },
      },
    ],
  })
  return { client, decisions }
}

interface ElasticThrottle {
  readonly kind: "elastic"
  readonly ceiling: number
  readonly signal: () => boolean
}
