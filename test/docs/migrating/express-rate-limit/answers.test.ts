import { memoryStore } from "@sluice/core"
import { rateLimit as sluice } from "@sluice/express"
import express, { type Request, type RequestHandler } from "express"
import { MemoryStore, rateLimit as peer } from "express-rate-limit"
import { rateLimit as peer6 } from "express-rate-limit6"
import { describe, expect, it } from "vitest"
import { answers, commonClock, statuses } from "../pairs.ts"
import { as } from "../requests.ts"
import { appOf } from "./app.ts"

const once = { windowMs: 60_000, limit: 1 }
const minutely = { limit: 1, window: "1 minute" } as const

describe("as the guide on responses states,", () => {
  it("the old library sends text, and Sluice sends a problem document with other headers", async () => {
    const seen = async (limiter: RequestHandler) => {
      const [, { status, headers, body } = { status: 0, headers: {}, body: "" }] = await answers(
        appOf(limiter),
        commonClock(),
        ["/", "/"],
      )
      const names = Object.keys(headers).filter((name) => /ratelimit|retry|cache/.test(name))
      return { status, type: headers["content-type"], body, names: names.sort() }
    }
    expect(await seen(peer(once))).toEqual({
      status: 429,
      type: "text/html; charset=utf-8",
      body: "Too many requests, please try again later.",
      names: ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
    })
    const ours = await seen(sluice({ ...minutely, clock: commonClock() }))
    expect(ours).toMatchObject({ status: 429, type: "application/problem+json" })
    expect(JSON.parse(ours.body)).toMatchObject({ status: 429, "violated-policies": ["ip-1m"] })
    expect(ours.names).toEqual(["cache-control", "ratelimit", "ratelimit-policy", "retry-after"])
  })

  it("draft 8 exposes a hash of the client, and draft 11 in Sluice does not", async () => {
    const policyOf = async (limiter: RequestHandler) =>
      (await answers(appOf(limiter), commonClock(), ["/"]))[0]?.headers["ratelimit-policy"]
    expect(await policyOf(peer({ ...once, standardHeaders: "draft-8" }))).toContain("pk=:")
    expect(await policyOf(sluice(minutely))).toBe('"ip-1m";q=1;w=60')
  })

  it("Sluice rejects draft-7 as a header dialect", () => {
    expect(() => sluice({ ...minutely, headers: "draft-7" as never })).toThrow(/"draft-7"/)
  })

  it("only the old library counts refused requests and exposes the client's key", async () => {
    const seen = async (limiter: RequestHandler, read: (req: Request) => unknown): Promise<unknown[]> => {
      const told: unknown[] = []
      const listener = express().use((req, res, next) => {
        res.once("finish", () => told.push(read(req)))
        next()
      })
      await answers(listener.use(limiter), commonClock(), ["/", "/", "/"])
      return told
    }
    const info = (req: Request): unknown => {
      const { used, key } = req.rateLimit as unknown as { used: number; key: string }
      return [used, key]
    }
    const key = "127.0.0.1"
    expect(await seen(peer(once), info)).toEqual([1, 2, 3].map((used) => [used, key]))
    const used = ({ rateLimit }: Request): number => (rateLimit?.limit ?? 0) - (rateLimit?.remaining ?? 0)
    expect(await seen(sluice(minutely), used)).toEqual([1, 1, 1])
  })

  it("the old library calls the next handler later, and Sluice immediately unless a function is async", async () => {
    const seen = async (limiter: RequestHandler): Promise<string[]> => {
      const order: string[] = []
      const app = express().use((req, res, next) => {
        const result: unknown = limiter(req, res, () => {
          order.push("next")
          next()
        })
        order.push("returned")
        return result
      })
      await answers(app, commonClock(), ["/"])
      return order
    }
    expect(await seen(peer(once))).toEqual(["returned", "next"])
    expect(await seen(sluice(minutely))).toEqual(["next", "returned"])
    expect(await seen(sluice({ ...minutely, skip: async () => false }))).toEqual(["returned", "next"])
  })

  it("onLimitReached of version 6 and the event first-refusal report a client once in a window", async () => {
    const reached: string[] = []
    const onLimitReached = ({ ip = "" }: Request): void => void reached.push(ip)
    const limits = sluice(minutely)
    limits.limiter.on("first-refusal", (_decision, req) => onLimitReached(req))
    for (const limiter of [peer6({ windowMs: 60_000, max: 1, onLimitReached, validate: false }), limits]) {
      expect(await statuses(appOf(limiter), ["/", "/", "/", "/"])).toEqual([200, 429, 429, 429])
      expect(reached.splice(0)).toEqual(["127.0.0.1"])
    }
  })

  it("the old library logs a wrong option, and Sluice throws an error that names Sluice's option", () => {
    const logged: unknown[] = []
    const logger = { warn: () => undefined, error: (error: unknown) => void logged.push(error) }
    peer({ ...once, windowsMs: 1, logger } as Parameters<typeof peer>[0])
    expect(String(logged)).toContain("windowsMs")
    const old = { windowMs: 60_000, max: 5 } as never
    expect(() => sluice(old)).toThrow(/"windowMs" is not a member of the options; use "window" instead/)
    expect(() => sluice(old)).toThrow(/"max" is not a member of the options; use "limit" instead/)
  })
})

describe("as the guide on outages states,", () => {
  it("the old memory store grows with each client, and Sluice's memory store is bounded", async () => {
    const store = new MemoryStore()
    const many = Array.from({ length: 50 }, (_, n) => as("X-Forwarded-For", `192.0.2.${n}`))
    await statuses(appOf(peer({ ...once, store })), many)
    expect(store.current.size).toBe(50)
    const bounded = { ...minutely, store: memoryStore({ maxKeys: 10 }), trustedProxies: 1 }
    const blocked = as("X-Forwarded-For", "198.51.100.1")
    const all = await statuses(appOf(sluice(bounded)), [blocked, blocked, ...many, blocked])
    expect([all[0], all[1], all.at(-1)]).toEqual([200, 429, 429])
  })
})
