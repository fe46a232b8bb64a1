import { shownAddress } from "../sockets/listening.ts"
import type { RedisSettings, Settings, TableSettings } from "./settings.ts"

/** Returns the settings in a form that is safe to log, without tokens and credentials. */
export function shownSettings(settings: Settings): object {
  const { grpc, http, operations, redis, tokens, decideTokens, rules, drain, bounds, ...others } = settings
  const { isRegistrationOpen, tls, ...rest } = others
  return {
    grpc: shownAddress(grpc),
    http: shownAddress(http),
    operations: shownAddress(operations),
    tls: tls === undefined ? "none" : tls,
    rules: typeof rules === "string" ? { file: rules } : { table: shownTable(rules) },
    counters: redis === undefined ? "memory" : shownRedis(redis),
    registration: withTokens(tokens) ?? registrationWithoutTokens(isRegistrationOpen),
    decisions: withTokens(decideTokens) ?? "open to every caller that reaches gRPC or HTTP",
    ...rest,
    ...bounds,
    drain,
  }
}

/** Describes who is allowed, by the services that have a token. Returns undefined if there are no tokens. */
function withTokens(tokens: Settings["tokens"]): string | undefined {
  const services = Object.keys(tokens)
  return services.length > 0 ? `with the token of ${services.join(", ")}` : undefined
}

function registrationWithoutTokens(isOpen: boolean): string {
  return isOpen ? "open, because only this machine can connect" : "closed, because there are no tokens"
}

function shownTable({ endpoint, ...table }: TableSettings): object {
  return { ...table, endpoint: endpoint === undefined ? undefined : shownUrl(endpoint) }
}

function shownRedis({ urls, isCluster, prefix, mirrors, lease, writeBackMs }: RedisSettings): object {
  const shown = (some: readonly string[]): string => some.map(shownUrl).join(",")
  const others = Object.entries(mirrors).map(([name, some]) => [name, shown(some)])
  return {
    [isCluster ? "redisCluster" : "redis"]: shown(urls),
    prefix,
    ...(others.length > 0 && { mirrors: Object.fromEntries(others) }),
    ...(lease && { lease }),
    ...(writeBackMs !== undefined && { writeBackMs }),
  }
}

/** Returns a URL without user, password and parameters, which may be secret. */
function shownUrl(text: string): string {
  const { protocol, username, password, host, pathname } = new URL(text)
  return `${protocol}//${username === "" && password === "" ? "" : "***@"}${host}${pathname}`
}
