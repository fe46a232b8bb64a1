// An app in its own process that makes one decision and closes its client. After that, the process must exit by
// itself.
import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { type ClientChoice, openClient } from "./open-client.ts"

const [choice = "", isFrozen = ""] = process.argv.slice(2)
const { client, close } = await openClient(JSON.parse(choice) as ClientChoice)
const store = redisStore({ client })
const limiter = createLimiter({
  limit: 10,
  window: "1 day",
  field: "service",
  store,
  service: "once",
  storeTimeoutMs: isFrozen === "" ? 60_000 : 50,
  logger: { warn() {}, error() {} },
})
if (isFrozen !== "") process.kill(Number(isFrozen), "SIGSTOP")
const decisions = await Promise.all(
  Array.from({ length: isFrozen === "" ? 1 : 10 }, () => limiter.decide({})),
)
// If these calls get no reply, they open the circuit breaker, which then probes in the background.
for (let i = 0; isFrozen !== "" && i < 10; i++) decisions.push(await limiter.decide({}))
close()
process.stdout.write(decisions.some(({ degraded }) => degraded) ? "degraded" : "decided")
