import { areLoopback } from "./read-settings.ts"
import { ROWS, type Settings } from "./settings-table.ts"

/** Returns the settings in a form that is safe to log, without tokens and credentials. */
export function shownSettings(settings: Settings): object {
  const rows = ROWS.map(([name, { kind }]) => {
    const value = settings[name]
    return [name, value === undefined || kind.show === undefined ? value : kind.show(value)] as const
  })
  const { tokens, decideTokens, ...shown } = Object.fromEntries(rows)
  const isOpen = isRegistrationOpen(settings)
  return {
    ...shown,
    ...(settings.tlsCert === undefined && { tls: "none" }),
    counters: settings.redis === undefined ? "memory" : "redis",
    registration:
      tokens ??
      (isOpen ? "open, because only this machine can connect" : "closed, because there are no tokens"),
    decisions: decideTokens ?? "open to every caller that reaches gRPC or HTTP",
  }
}

/** Whether any caller may register rules if no tokens are configured. */
export function isRegistrationOpen({ grpc, http }: Pick<Settings, "grpc" | "http">): boolean {
  return areLoopback(grpc, http)
}
