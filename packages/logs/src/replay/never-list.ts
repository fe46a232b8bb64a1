import { BlockList, isIP } from "node:net"
import { partitionValues } from "@sluice/core/kit"
import { createReplay, type ReplayVerdict } from "@sluice/core/replay"
import { LogError } from "../log-error.ts"

/** Clients that must never be refused: addresses, networks, and values of fields. */
export class NeverList {
  readonly name: string
  readonly #networks = new BlockList()
  readonly #values = new Set<string>()
  /** The values by the text of their counter, which is a hash for long values. */
  readonly #byPartition = new Map<string, string>()
  readonly #found = new Set<string>()

  /** `text` contains one client in each line. A "#" at the start of a line begins a comment. */
  constructor(name: string, text: string) {
    this.name = name
    for (const line of text.replace(/^\ufeff/, "").split(/\r?\n/)) {
      const entry = line.trim()
      if (entry !== "" && !entry.startsWith("#")) this.#add(entry)
    }
  }

  /** Records a refused client if the list contains its address or its value of a rule's field. */
  refused(verdict: ReplayVerdict): void {
    const address = verdict.address()
    if (address !== undefined && this.#networks.check(address, isIP(address) === 4 ? "ipv4" : "ipv6"))
      this.#find(address)
    for (const { partition } of verdict.checks) {
      const listed = this.#byPartition.get(partition)
      if (listed !== undefined) this.#find(listed)
      for (const value of partitionValues(partition) ?? []) if (this.#values.has(value)) this.#find(value)
    }
  }

  get found(): readonly string[] {
    return [...this.#found]
  }

  #add(entry: string): void {
    const [address = "", bits] = entry.split("/")
    const version = isIP(address)
    if (version !== 0) {
      const longest = version === 4 ? 32 : 128
      const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : 999
      if (prefix > longest || entry.split("/").length > 2) this.#refuse(entry)
      this.#networks.addSubnet(address, prefix, version === 4 ? "ipv4" : "ipv6")
      if (bits !== undefined) return
    } else if (/^[\d.]+\/\d+$|^[\da-f:]+::?[\da-f:]*\/\d+$/i.test(entry)) this.#refuse(entry)
    this.#values.add(entry)
    this.#byPartition.set(partitionOf(entry), entry)
  }

  #refuse(entry: string): never {
    throw new LogError(
      `--never: ${entry} in ${this.name} is not a network: expected one such as 192.0.2.0/24`,
    )
  }

  #find(name: string): void {
    // Copy the string, because it may be a part of a chunk, and would keep the whole chunk in memory.
    if (!this.#found.has(name)) this.#found.add(Buffer.from(name, "utf16le").toString("utf16le"))
  }
}

/** Returns the partition in which a rule with one field counts this value. Long and unusual values are encoded. */
function partitionOf(value: string): string {
  const replay = createReplay({ rules: [{ field: "header:value", limit: 1, window: "1 minute" }] })
  return replay.offer({ headers: { value }, atMs: 0 }).checks[0]?.partition as string
}
