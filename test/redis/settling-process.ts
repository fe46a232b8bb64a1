// A process that settles a reservation, but never sends the refunds that follow the mark. Its parent process kills it.
import { createLimiter, type Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { RESERVING, type Settling } from "./reserving.ts"

const { port } = JSON.parse(process.argv[2] ?? "") as Settling
process.once("disconnect", () => process.exit())
const shared = redisStore({ client: new Redis(port, "127.0.0.1") })
const store: Store = {
  isShared: true,
  take: (checks, withinMs) => shared.take(checks, withinMs),
  read: (keys, withinMs) => shared.read(keys, withinMs),
  refund() {
    process.send?.({ text, isMarked: true })
    return new Promise(() => {})
  },
  reset: (keys, withinMs) => shared.reset(keys, withinMs),
  close: () => shared.close(),
}
const limiter = createLimiter({ ...RESERVING, store })
const { text } = limiter.reserve(await limiter.enforce({}))
await limiter.settleReservation(text, { used: { tokens: 30 } })
