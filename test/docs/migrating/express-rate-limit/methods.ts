import { memoryStore } from "@sluice/core"
import { rateLimit as sluice } from "@sluice/express"
import type { RequestHandler } from "express"
import { MemoryStore, rateLimit as peer } from "express-rate-limit"
import type { Pair } from "../pairs.ts"
import { thenRefused, twice } from "../requests.ts"
import { appOf } from "./app.ts"

/** Methods that an app calls, as opposed to options that it sets. */
export const METHODS: Readonly<Record<string, Pair>> = {
  resetKey: {
    before() {
      const limits = peer({ limit: 1 })
      return appOf(
        on("/reset", () => limits.resetKey("127.0.0.1")),
        limits,
      )
    },
    after(clock) {
      const limits = sluice({ limit: 1, window: "1 minute", clock })
      return appOf(
        on("/reset", () => limits.limiter.reset({ remoteAddress: "127.0.0.1" } as never)),
        limits,
      )
    },
    steps: [...twice, "/reset", ...twice],
    expected: [...thenRefused, 200, ...thenRefused],
  },
  getKey: {
    before() {
      const limits = peer({ limit: 3 })
      return appOf(
        on("/left", async () => 3 - ((await limits.getKey("127.0.0.1"))?.totalHits ?? 0)),
        limits,
      )
    },
    after(clock) {
      const limits = sluice({ limit: 3, window: "1 minute", clock })
      const left = async () => (await limits.limiter.peek({ remoteAddress: "127.0.0.1" } as never)).remaining
      return appOf(on("/left", left), limits)
    },
    steps: ["/left", "/", "/left", "/left"],
    told: ({ body }) => body,
    expected: ["3", "ok", "2", "2"],
  },
  MemoryStore: {
    before: () => appOf(peer({ limit: 1, store: new MemoryStore() })),
    after: (clock) =>
      appOf(sluice({ limit: 1, window: "1 minute", clock, store: memoryStore({ maxKeys: 10, clock }) })),
    steps: twice,
    expected: thenRefused,
  },
}

/** Returns a handler that responds to a path before any limiter runs. */
function on(path: string, yields: () => unknown): RequestHandler {
  return async (req, res, next) => {
    if (req.path === path) res.send(String(await yields()))
    else next()
  }
}
