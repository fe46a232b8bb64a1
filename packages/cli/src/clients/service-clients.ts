import type { Io } from "../io.ts"
import { callService } from "../service-call.ts"
import type { TopAnswer } from "../top-table.ts"
import { UsageError } from "../usage-error.ts"
import type {
  ClientAction,
  ClientsBackend,
  CountedClient,
  ShownClient,
  TopList,
  TopQuery,
  TopWait,
} from "./clients-backend.ts"

const METHODS = {
  reset: "ResetClient",
  block: "BlockClient",
  unblock: "UnblockClient",
  grant: "GrantUnits",
} as const

/** The clients of services in a decision service. */
export class ServiceClients implements ClientsBackend {
  readonly #url: string | undefined
  readonly #io: Io

  constructor(url: string | undefined, io: Io) {
    this.#url = url
    this.#io = io
  }

  async show(client: CountedClient): Promise<ShownClient> {
    return (await callService(this.#url, "ShowClient", client, this.#io)) as unknown as ShownClient
  }

  async change(action: ClientAction, client: CountedClient, amount?: string): Promise<boolean> {
    const given = action === "grant" ? { units: amount } : { for: amount }
    await callService(this.#url, METHODS[action], { ...client, ...given }, this.#io)
    return true
  }

  async top({ service, rule = "", limit = 0 }: TopQuery, wait?: TopWait): Promise<TopList> {
    if (service === undefined)
      throw new UsageError("--service is missing: the decision service lists the clients of one service")
    const request = { service, rule, limit }
    const { missing, ...answer } = await callService(this.#url, "ListClients", request, this.#io, wait)
    return {
      services: [{ ...answer, service } as unknown as TopAnswer],
      ...(typeof missing === "string" && missing !== "" && { missing }),
    }
  }

  close(): void {}
}
