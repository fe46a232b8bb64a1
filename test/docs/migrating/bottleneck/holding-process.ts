// A process that takes the only permit of a limit through Redis, and holds it until the process is killed.
import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import Bottleneck from "bottleneck"
import { Redis } from "ioredis"
import { Semaphore } from "redis-semaphore"
import { bottleneckOptions, HOLD_MS, SEMAPHORE, sluiceOptions } from "./one-permit.ts"

const [, , library = "", port = ""] = process.argv
const client = new Redis(Number(port), "127.0.0.1")
const isHeld = (): void => void process.send?.("held")
const forever = (): Promise<never> => {
  isHeld()
  return new Promise(() => {})
}

const HOLD: Readonly<Record<string, () => Promise<unknown>>> = {
  sluice: () => createLimiter({ ...sluiceOptions, store: redisStore({ client }) }).run({}, forever),
  "redis-semaphore": () => new Semaphore(client, ...SEMAPHORE).acquire().then(isHeld),
  bottleneck: () => new Bottleneck(bottleneckOptions(Number(port))).schedule(forever),
  "bottleneck, expiration": () =>
    new Bottleneck(bottleneckOptions(Number(port))).schedule({ expiration: HOLD_MS }, forever),
}
process.once("disconnect", () => process.exit())
await HOLD[library]?.()
