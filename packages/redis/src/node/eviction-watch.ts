import { outsideRequests } from "@sluice/core/kit"
import type { StoreWarningEvent } from "@sluice/core/stores"
import { readReply } from "../scripts/script-reply.ts"

/**
 * Shortest time between two eviction checks of a server, in milliseconds. A check takes about 0.1 ms of the server's
 * time.
 */
const LOOK_EVERY_MS = 10_000

/**
 * Returns the server's eviction policy and the number of keys that the server has evicted. This is a script because a
 * cluster client sends scripts to the right node. `pcall` returns an error as a value if the Redis user may not call
 * INFO.
 */
export const EVICTIONS = `local memory, stats = redis.pcall('INFO', 'memory'), redis.pcall('INFO', 'stats')
if type(memory) ~= 'string' or type(stats) ~= 'string' then return { '' } end
return { string.match(memory, 'maxmemory_policy:(%S+)') or '', string.match(stats, 'evicted_keys:(%d+)') or '0' }`

/**
 * Checks whether a server evicts keys, after the server's first reply and then at most every ten seconds. Checking
 * only after a reply needs no timer, and no request waits for the check.
 */
export class EvictionWatch {
  readonly #title: string
  readonly #ask: () => Promise<unknown>
  readonly #warn: (event: StoreWarningEvent) => void
  #dueMs = Number.NEGATIVE_INFINITY
  #evictedKeys: number | undefined

  /** `title` is the server's name in warnings. `ask` sends the `EVICTIONS` script. */
  constructor(title: string, ask: () => Promise<unknown>, warn: (event: StoreWarningEvent) => void) {
    this.#title = title
    this.#ask = ask
    this.#warn = warn
  }

  /** Checks for evictions if a check is due. Must be called after each reply of the server. */
  replied(): void {
    if (performance.now() < this.#dueMs) return
    this.#dueMs = Number.POSITIVE_INFINITY
    outsideRequests(() => void this.#look())
  }

  async #look(): Promise<void> {
    try {
      const reply = readReply(await this.#ask())
      const policy = String(reply[0])
      // Never check again if the user may not call INFO or a proxy changes its reply. Repeated attempts would fill
      // the server's ACL log.
      if (!/^(noeviction|(allkeys|volatile)-[a-z]+)$/.test(policy)) return
      this.#learn(policy, Number(reply[1]))
    } catch {
      // Ignore a lost connection, because calls that decide requests report it.
    }
    this.#dueMs = performance.now() + LOOK_EVERY_MS
  }

  #learn(policy: string, evictedKeys: number): void {
    const evicted = evictedKeys - (this.#evictedKeys ?? evictedKeys)
    this.#evictedKeys = evictedKeys
    if (policy !== "noeviction")
      this.#say("policy", `deletes counters when it is full (maxmemory-policy ${policy})`)
    if (evicted > 0)
      this.#say(
        "evicted",
        `evicted ${evicted === 1 ? "1 key" : `${evicted} keys`}, which may include counters`,
      )
  }

  #say(subject: string, what: string): void {
    this.#warn({
      type: "warning",
      code: "SLUICE_STORE_EVICTS",
      subject: `${subject} ${this.#title}`,
      message: `${this.#title} ${what}, so clients exceed their limits. Set maxmemory-policy to noeviction, and give it enough memory.`,
    })
  }
}
