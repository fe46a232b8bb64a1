import type { LogRecord } from "../reading/log.ts"
import { type ClientReading, GroupReader } from "./request-groups.ts"
import type { SampledClients } from "./sampled-clients.ts"

/** Finds the client of each request, as a rule without `match` does. */
export class ClientReader {
  readonly #reader: GroupReader
  readonly #isByPeer: boolean
  #name: string | undefined
  #withoutField = 0

  /** @throws InvalidOptionError if a field or an option of the client's address is invalid. */
  constructor(reading: ClientReading) {
    const { by, address } = reading
    this.#reader = new GroupReader([{ name: "all" }], 0, reading)
    this.#isByPeer =
      by.length === 1 &&
      by[0] === "ip" &&
      address.trustedProxies === undefined &&
      address.clientIpHeader === undefined
  }

  /** Counts a request. Returns the client of a request; undefined if the log lacks the fields. */
  count(record: LogRecord, clients: SampledClients): number | undefined {
    const address = record.remoteAddress
    if (this.#isByPeer && address !== undefined && isPlainAddress(address)) {
      const known = clients.countKnown(address)
      if (known !== undefined) return known
    }
    const name = this.#nameOf(record)
    return name === undefined ? undefined : clients.count(name)
  }

  /** Returns the client of a request; undefined if it is not in the table. */
  find(record: LogRecord, clients: SampledClients): number | undefined {
    const address = record.remoteAddress
    if (this.#isByPeer && address !== undefined && isPlainAddress(address)) {
      const known = clients.find(address)
      if (known !== undefined) return known
    }
    const name = this.#nameOf(record)
    return name === undefined ? undefined : clients.find(name)
  }

  /** Number of requests that lack a field, such as an address. A rule counts such requests together, or by address. */
  get withoutField(): number {
    return this.#withoutField
  }

  /** Fields that the log lacks. */
  get missing(): readonly string[] {
    return this.#reader.missing.map(({ field }) => field)
  }

  #nameOf(record: LogRecord): string | undefined {
    this.#name = undefined
    this.#reader.read(record, this.#visit)
    return this.#name
  }

  readonly #visit = (_group: number, name: string): void => {
    // These are partitions of requests that lack a field. Values from clients never begin with these strings.
    if (name === "@shared" || name.startsWith("@ip:")) this.#withoutField++
    this.#name = name
  }
}

/**
 * True for an IPv4 address in the core's spelling, because such an address is itself the name of its client. Other
 * addresses have several spellings, or count as a network.
 */
function isPlainAddress(address: string): boolean {
  for (let at = 0; at < address.length; at++) {
    const code = address.charCodeAt(at)
    const isDigitOrDot = (code >= 48 && code <= 57) || code === 46
    if (!isDigitOrDot) return false
  }
  return true
}
