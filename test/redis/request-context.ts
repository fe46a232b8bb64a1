// An app in its own process that decides in an AsyncLocalStorage context. The app prints "released", or the objects
// that keep the context in memory.
import { AsyncLocalStorage } from "node:async_hooks"
import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { whatHolds } from "../servers/retainers.ts"
import { until } from "../servers/until.ts"

class RequestContext {}
const storage = new AsyncLocalStorage<RequestContext>()

const [situation = "", port = "", pid = ""] = process.argv.slice(2)
const isSilent = situation === "silent"
const client = new Redis(Number(port), "127.0.0.1", { lazyConnect: situation === "first" })
client.on("error", () => {})
const limiter = createLimiter({
  ...{ limit: 1_000_000, window: "1 day", service: "contexts", logger: { warn() {}, error() {} } },
  ...{ store: redisStore({ client }), storeTimeoutMs: isSilent ? 50 : 30_000 },
})
const decide = () => limiter.decide({ remoteAddress: "192.0.2.1" })

/** Runs `work` in a new context. */
async function inContext(work: () => Promise<unknown>): Promise<WeakRef<RequestContext>> {
  const context = new RequestContext()
  await storage.run(context, work)
  return new WeakRef(context)
}

/** True if the next decision waits for nothing outside this process. */
async function decidesAtOnce(): Promise<boolean> {
  let isDecided = false
  decide().then(() => {
    isDecided = true
  })
  for (let i = 0; i < 20; i++) await Promise.resolve()
  return isDecided
}

/** The work of a request in its context, for each situation of the app. */
const WORK: Readonly<Record<string, () => Promise<unknown>>> = {
  first: decide,
  async held() {
    setTimeout(() => {}, 600_000)
  },
  busy: () => Promise.all(Array.from({ length: 20 }, decide)),
  silent: () => until("nobody waits", decidesAtOnce),
}

if (situation !== "first") await decide()
if (situation === "busy") {
  for (let i = 0; i < 20; i++)
    void (async () => {
      for (;;) await decide()
    })()
}
if (isSilent) process.kill(Number(pid), "SIGSTOP")
const seen = await inContext(WORK[situation] as () => Promise<unknown>)
const isReleased = (): boolean => {
  globalThis.gc?.()
  return seen.deref() === undefined
}
const outcome = await until("the context is released", isReleased, situation === "held" ? 100 : 60_000).then(
  () => "released",
  () => whatHolds(RequestContext.name),
)
process.stdout.write(outcome, () => process.exit())
