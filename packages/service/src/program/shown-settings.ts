import { shownAddress } from "../decision-service.ts"
import type { RedisSettings, Settings, TableSettings } from "./settings.ts"

/** The settings as they may be printed: without tokens, and of Redis only where it is. */
export function shownSettings(settings: Settings): object {
  const { grpc, http, operations, redis, tokens, rules, drain, bounds, ...others } = settings
  const { isRegistrationOpen, tls, ...rest } = others
  return {
    grpc: shownAddress(grpc),
    http: shownAddress(http),
    operations: shownAddress(operations),
    tls: tls === undefined ? "none" : tls,
    rules: typeof rules === "string" ? { file: rules } : { table: shownTable(rules) },
    counters: redis === undefined ? "memory" : shownRedis(redis),
    registration: registration(isRegistrationOpen, tokens),
    ...rest,
    ...bounds,
    drain,
  }
}

function registration(isOpen: boolean, tokens: Settings["tokens"]): string {
  const services = Object.keys(tokens)
  if (services.length > 0) return `with the token of ${services.join(", ")}`
  return isOpen ? "open, as nobody but this machine can ask" : "closed, as there are no tokens"
}

function shownTable({ endpoint, ...table }: TableSettings): object {
  return { ...table, endpoint: endpoint === undefined ? undefined : shownUrl(endpoint) }
}

function shownRedis({ urls, isCluster, prefix }: RedisSettings): object {
  return { [isCluster ? "redisCluster" : "redis"]: urls.map(shownUrl).join(","), prefix }
}

/** User, password and parameters may be secret. */
function shownUrl(text: string): string {
  const { protocol, username, password, host, pathname } = new URL(text)
  return `${protocol}//${username === "" && password === "" ? "" : "***@"}${host}${pathname}`
}
