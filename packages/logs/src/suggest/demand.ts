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
  /** The groups that are counted in addition to all requests. */
  readonly groups: readonly RequestGroup[]
  readonly maxClients: number
  readonly capacity?: Capacity | undefined
}

/** The minimum share of failed requests for a path to count as a login. */
const LEAST_FAILED_SHARE = 0.05

/** The first pass over the logs. It counts the demand of each client in each group, independently of any limit. */
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
    // Create the reader first, because it checks the address options, and `ProxyHeader` does not.
    this.#reader = new ClientReader(options)
    this.proxies = new ProxyHeader(options.address)
    this.#groups = [{ name: "all" }, ...groups].map((group) => this.#newGroup(group))
    this.#groupReader = groups.length === 0 ? undefined : new GroupReader(groups, 1, options)
    this.#loginPaths = new LoginPaths(groups.flatMap(({ match }) => plainPath(match?.path ?? "") ?? []))
    this.clients = new SampledClients(maxClients, (client) => {
      for (const group of this.#groups) group.forget(client)
    })
    this.#service = capacity && createWindowPeaks(algorithm, capacity.window)
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
    // Use the reader from before this request, because a new login has already counted the requests up to this one.
    const reader = this.#loginReader
    if (record.url !== undefined && this.clients.factor === 1) {
      const found = this.#loginPaths.add(record.url, this.#client, this.#atMs, record.status)
      if (found !== undefined) this.#startLogin(found)
    }
    reader?.read(record, this.#visit)
  }

  /**
   * The groups that have requests. The group of all requests is first, then the groups of the options, then the paths
   * that look like logins.
   */
  get groups(): readonly GroupDemand[] {
    return this.#groups.filter(
      ({ group, requests, failed }, at) =>
        at === 0 || (requests > 0 && (group.isLogin !== true || failed >= LEAST_FAILED_SHARE * requests)),
    )
  }

  /** Number of requests that lack a field. A rule counts such requests together, or by address. */
  get withoutField(): number {
    return this.#reader.withoutField
  }

  /** The highest number of requests to the whole service in the window of the capacity. */
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
    return new GroupDemand(group, algorithm, windows)
  }
}
