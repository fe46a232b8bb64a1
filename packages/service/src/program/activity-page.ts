import crypto from "node:crypto"
import type { IncomingMessage } from "node:http"
import type { Logger } from "@sluice/core"
import { partitionValues } from "@sluice/core/kit"
import {
  type Activity,
  type ActivityBoard,
  type Dashboard,
  type DashboardSource,
  dashboard,
  recordActivity,
} from "@sluice/dashboard"
import type { Audit } from "../registering/audit.ts"
import { tokens } from "../registering/tokens.ts"
import { PAGE } from "./operations-server.ts"
import type { Settings } from "./settings/settings-table.ts"
import { isRegistrationOpen } from "./settings/shown-settings.ts"

/** Returns the records of all services, which the instances share on the board. Undefined if they are off. */
export function openActivity(
  { activity }: Pick<Settings, "activity">,
  board: ActivityBoard | undefined,
): Activity | undefined {
  return activity ? recordActivity([], { shared: board }) : undefined
}

/**
 * Creates the page that shows who is refused. Returns undefined if it is off. Whoever may register the rules of a service
 * may also reset and block its clients: callers with its token, or without any tokens, visitors on this machine.
 */
export function createPage(
  settings: Pick<Settings, "dashboard" | "tokens" | "grpc" | "http">,
  source: DashboardSource,
  audit: Audit,
  logger: Logger,
): Dashboard | undefined {
  if (settings.dashboard === "off") return undefined
  const isOpen = settings.dashboard === "open"
  const known = tokens(settings.tokens ?? {})
  const needsNoToken = known.isEmpty && isRegistrationOpen(settings)
  return dashboard<IncomingMessage>(source, {
    ...{ path: PAGE, logger },
    authorize: (_request, isLocal) => (isLocal && needsNoToken ? "operator" : isLocal || isOpen),
    ...(!known.isEmpty && { token: (token, service) => known.allows(token, service) }),
    ...(settings.tokens !== undefined && { hashSecret: secretOf(settings.tokens) }),
    audit({ client, ...change }, { socket }) {
      const peer = socket.remoteAddress ?? ""
      audit.clientChanged?.({ ...change, client: partitionValues(client) ?? [client], peer })
    },
  })
}

/**
 * Returns the same secret in all instances, whatever the order of their tokens, so that the hash of a client does not change
 * between them. Scrypt is slow. Otherwise, a visitor who knows a client and its hash could test millions of tokens a second.
 */
function secretOf(tokensByService: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(tokensByService).sort()
  return crypto.scryptSync(JSON.stringify(sorted), "sluice dashboard", 32).toString("base64")
}
