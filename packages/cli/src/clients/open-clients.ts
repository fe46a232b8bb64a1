import type { LimiterOptions } from "@sluice/core"
import type { Io } from "../io.ts"
import { UsageError } from "../usage-error.ts"
import type { ClientsBackend } from "./clients-backend.ts"
import type { RedisClients } from "./redis-clients.ts"
import { ServiceClients } from "./service-clients.ts"

/** Options of `sluice clients` that say where clients are counted. */
export interface PlaceOptions extends Pick<LimiterOptions<unknown>, "hashKeys" | "ipv6Prefix"> {
  readonly url?: string
  readonly rules?: string
  readonly redis?: string
  readonly prefix?: string
  readonly anchor?: string
}

/**
 * Calls `use` with the decision service, or with Redis if a rules file is given. A list needs no rules file: it is read
 * from Redis if Redis is configured and the decision service is not. Throws UsageError if the options contradict each
 * other.
 */
export async function withClients<Result>(
  options: PlaceOptions,
  io: Io,
  use: (clients: ClientsBackend) => Promise<Result>,
  purpose: "client" | "list" = "client",
): Promise<Result> {
  const clients = await openClients(options, io, purpose === "list")
  try {
    return await use(clients)
  } finally {
    clients.close()
  }
}

async function openClients(options: PlaceOptions, io: Io, isList: boolean): Promise<ClientsBackend> {
  const { url, rules, redis, prefix, hashKeys, ipv6Prefix, anchor } = options
  const { SLUICE_URL = "", REDIS_URL = "" } = io.env
  const hasService = url !== undefined || SLUICE_URL !== ""
  const isInRedis = isList ? redis !== undefined || (REDIS_URL !== "" && !hasService) : rules !== undefined
  if (!isInRedis) {
    const stray = Object.entries({ redis, prefix, hashKeys, ipv6Prefix, anchor }).find(
      ([, value]) => value !== undefined,
    )
    if (stray !== undefined) throw new UsageError(strayText(stray[0], isList))
    if (REDIS_URL !== "" && !hasService) {
      throw new UsageError(
        "--rules is missing: give the rules file of the app whose Redis is in REDIS_URL, or give the decision service with --url",
      )
    }
    return new ServiceClients(url, io)
  }
  if ((redis ?? REDIS_URL) === "") {
    throw new UsageError(
      "--rules needs the Redis of the app: set REDIS_URL, for example to redis://localhost:6379/0",
    )
  }
  return openRedis(options, io)
}

/** Returns the clients of the app in the Redis at `--redis` or `REDIS_URL`. Does not connect yet. */
export async function openRedis(options: PlaceOptions, io: Io): Promise<RedisClients> {
  // Loaded on demand, because the decision service does not need Redis.
  const { RedisClients } = await import("./redis-clients.ts")
  const { rules = "", redis, prefix, hashKeys, ipv6Prefix, anchor } = options
  const { REDIS_URL = "", SLUICE_HASH_SECRET = "" } = io.env
  const hashSecret = SLUICE_HASH_SECRET === "" ? undefined : SLUICE_HASH_SECRET
  const place = {
    ...(redis === undefined ? { url: REDIS_URL, source: "REDIS_URL" } : { url: redis, source: "--redis" }),
    ...{ prefix, rules, anchor, naming: { hashKeys, hashSecret, ipv6Prefix } },
  }
  return new RedisClients(place, io)
}

function strayText(option: string, isList: boolean): string {
  const flag = `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  return `${flag} is only for Redis: give ${isList ? "--redis" : "--rules with the rules file of the app"}, too`
}
