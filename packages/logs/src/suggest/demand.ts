import type { LogRecord } from "../reading/log.ts"
import { ProxyHeader } from "../replay/proxy-header.ts"
import { ClientReader } from "./client-reader.ts"
import { GroupDemand } from "./group-demand.ts"
import { type EarlierRequests, isFailedLogin, LoginPaths, plainPath } from "./login-paths.ts"
import { type ClientReading, GroupReader, type RequestGroup } from "./request-groups.ts"
import { SampledClients } from "./sampled-clients.ts"
import type { Capacity, WindowLength } from "./window-length.ts"
import { createWindowPeaks, type WindowAlgorithm, type WindowPeaks } from "./window-peaks.ts"

/** The options for reading the demand of clients. */
export interface DemandOptions extends ClientReading {
  readonly windows: readonly WindowLength[]
  readonly algorithm: WindowAlgorithm
  /** The groups in addition to all requests. */
  readonly groups: readonly RequestGroup[]
  readonly maxClients: number
  readonly capacity?: Capacity | undefined
}

/** A login needs at least this share of failed requests. */
const LEAST_FAILED_SHARE = 0.05

/** The first pass over the logs: counts what each client of each group asks for, whatever the limits may be. */
export class ClientDemand {
  readonly clients: SampledClients
  readonly proxies: ProxyHeader
  readonly #options: DemandOptions
  readonly #groups: GroupDemand[]
  readonly #reader: ClientReader
  readonly #groupReader: GroupReader | undefined
  readonly #loginPaths: LoginPaths
  readonly #logins: RequestGroup[] = []
  #loginReader: GroupReader | undefined
  readonly #service: WindowPeaks | undefined
  #client = 0
  #atMs = 0
  #status: number | undefined

  constructor(options: DemandOptions) {
    const { groups, maxClients, capacity, algorithm } = options
    this.#options = options
    // Checks the options of the address, which `ProxyHeader` trusts.
    this.#reader = new ClientReader(options)
    this.proxies = new ProxyHeader(options.address)
    this.#groups = [{ name: "all" }, ...groups].map((group) => this.#newGroup(group))
    this.#groupReader = groups.length === 0 ? undefined : new GroupReader(groups, 1, options)
    this.#loginPaths = new LoginPaths(groups.flatMap(({ match }) => plainPath(match?.path ?? "") ?? []))
    this.clients = new SampledClients(maxClients, (client) => {
      for (const group of this.#groups) group.forget(client)
    })
    this.#service = capacity && createWindowPeaks(algorithm, capacity.window.ms)
  }

  /** Counts a request. Times must not decrease. */
  offer(record: LogRecord): void {
    this.#atMs = Math.floor(record.atMs)
    this.#status = record.status
    this.#service?.add(0, this.#atMs)
    this.proxies.see(record)
    const client = this.#reader.count(record, this.clients)
    if (client === undefined) return
    this.#client = client
    ;(this.#groups[0] as GroupDemand).add(client, this.#atMs)
    this.#groupReader?.read(record, this.#visit)
    if (record.method?.toUpperCase() !== "POST") return
    // A request is counted by the reader that exists when it arrives, because a new login counts the earlier requests.
    const reader = this.#loginReader
    if (record.url !== undefined && this.clients.factor === 1) {
      const found = this.#loginPaths.add(record.url, this.#client, this.#atMs, record.status)
      if (found !== undefined) this.#startLogin(found)
    }
    reader?.read(record, this.#visit)
  }

  /** The groups that have requests: all of them first, then those of the options, then those that look like logins. */
  get groups(): readonly GroupDemand[] {
    return this.#groups.filter(
      ({ group, requests, failed }, at) =>
        at === 0 || (requests > 0 && (group.isLogin !== true || failed >= LEAST_FAILED_SHARE * requests)),
    )
  }

  /** Number of requests that lack a field. A rule counts them together, or by address. */
  get withoutField(): number {
    return this.#reader.withoutField
  }

  /** Most requests of the whole service in the window of its capacity. */
  get servicePeak(): number {
    return this.#service?.peakOf(0) ?? 0
  }

  /** Fields that the log lacks, with the name of the group that needs them. */
  get missing(): readonly { readonly group: string; readonly field: string }[] {
    const ofGroups = this.#groupReader?.missing ?? []
    return [
      ...this.#reader.missing.map((field) => ({ group: "all", field })),
      ...ofGroups.map(({ group, field }) => ({
        group: (this.#groups[group] as GroupDemand).group.name,
        field,
      })),
    ]
  }

  /** All groups count by the same fields, so the client of a request is the same in all of them. */
  readonly #visit = (index: number): void => {
    const group = this.#groups[index] as GroupDemand
    group.add(this.#client, this.#atMs)
    if (group.group.isLogin === true && isFailedLogin(this.#status)) group.failed++
  }

  #startLogin({ path, clients, timesMs, failed }: EarlierRequests): void {
    const group = { name: `POST ${path}`, match: { methods: ["POST"], path }, isLogin: true }
    const demand = this.#newGroup(group)
    clients.forEach((client, at) => {
      demand.add(client, timesMs[at] as number)
    })
    demand.failed = failed
    this.#groups.push(demand)
    this.#logins.push(group)
    this.#loginReader = new GroupReader(
      this.#logins,
      this.#groups.length - this.#logins.length,
      this.#options,
    )
  }

  #newGroup(group: RequestGroup): GroupDemand {
    const { algorithm, windows } = this.#options
    return new GroupDemand(
      group,
      algorithm,
      windows.map(({ ms }) => ms),
    )
  }
}
