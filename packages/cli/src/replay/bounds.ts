import { readFileSync } from "node:fs"
import { BlockList, isIP } from "node:net"
import { createReplay } from "@sluice/core/replay"
import { UsageError } from "../usage-error.ts"
import type { BoundResult, ReplayResult } from "./result.ts"

/** A number, or a percentage of all. */
export interface Bound {
  /** The text as given, such as "0.5%". */
  readonly text: string
  readonly most: number
  readonly isPercentage: boolean
}

/** The bounds of a replay. A bound that is exceeded makes the command exit with 1. */
export interface ReplayBounds {
  readonly maxRefused?: Bound | undefined
  readonly maxRefusedClients?: Bound | undefined
  readonly maxNewlyRefused?: Bound | undefined
  /** Clients that must not be refused. */
  readonly never?: NeverList | undefined
}

/** Returns a bound such as "100" or "0.5%"; undefined if the text is neither. */
export function parseBound(text: string): Bound | undefined {
  const parts = /^(\d{1,15}(?:\.\d{1,6})?)(%?)$/.exec(text)
  if (parts === null) return undefined
  const [most, isPercentage] = [Number(parts[1]), parts[2] === "%"]
  if (isPercentage ? most > 100 : !Number.isSafeInteger(most)) return undefined
  return { text, most, isPercentage }
}

/** Returns which bounds hold. Rules in shadow mode refuse nothing, so they break no bound. */
export function checkBounds(
  { maxRefused, maxRefusedClients, maxNewlyRefused, never }: ReplayBounds,
  { total, against }: Pick<ReplayResult, "total" | "against">,
): readonly BoundResult[] {
  const results: BoundResult[] = []
  const check = (option: string, bound: Bound | undefined, value: number, all: number): void => {
    if (bound === undefined) return
    // Multiply instead of dividing, because a quotient may be rounded up to the bound.
    const holds = bound.isPercentage ? value * 100 <= bound.most * all : value <= bound.most
    const share = bound.isPercentage ? `${value} of ${all}, ${percentText(value, all)}` : `${value}`
    results.push({ bound: `${option} ${bound.text}`, value: share, holds })
  }
  check("--max-refused", maxRefused, total.refused, total.seen)
  check("--max-refused-clients", maxRefusedClients, total.clients.refused, total.clients.seen)
  if (against !== undefined)
    check("--max-newly-refused", maxNewlyRefused, against.newlyRefused.requests, total.seen)
  if (never !== undefined) {
    const [first, ...others] = never.found
    const more = others.length > 0 ? ` and ${others.length} more` : ""
    results.push({
      bound: `--never ${never.name}`,
      value: first === undefined ? "none of them is refused" : `refused: ${first}${more}`,
      holds: first === undefined,
    })
  }
  return results
}

/** Returns a share as a percentage, rounded up if it would be 0. */
export function percentText(part: number, all: number): string {
  if (part === 0 || all === 0) return "0.0%"
  const percent = (100 * part) / all
  if (percent >= 1) return `${percent.toFixed(1)}%`
  return percent >= 0.01 ? `${percent.toFixed(2)}%` : "<0.01%"
}

/** Clients that must never be refused: addresses, CIDRs, and values of fields. */
export class NeverList {
  readonly name: string
  readonly #texts = new Set<string>()
  readonly #networks = new BlockList()
  readonly #checked = new Set<string>()
  readonly #found = new Set<string>()

  /** Reads a file with one client in each line. A "#" at the start of a line begins a comment. */
  static ofFile(name: string, ipv6Prefix: number | undefined): NeverList {
    try {
      return new NeverList(name, readFileSync(name, "utf8"), ipv6Prefix)
    } catch (error) {
      throw new UsageError(`--never: ${name} cannot be read: ${(error as Error).message}`, { cause: error })
    }
  }

  constructor(name: string, text: string, ipv6Prefix: number | undefined) {
    this.name = name
    // Clients of an IPv6 network count as one, so the network of a listed address is listed.
    const replay = createReplay({ rules: [], ipv6Prefix })
    for (const line of text.replace(/^\ufeff/, "").split(/\r?\n/)) {
      const entry = line.trim()
      if (entry === "" || entry.startsWith("#")) continue
      const [address = "", bits] = entry.split("/")
      const version = isIP(address)
      if (version === 0) this.#texts.add(entry)
      else if (bits === undefined)
        this.#texts.add(replay.offer({ remoteAddress: address, atMs: 0 }).client ?? entry)
      else if (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
        this.#networks.addSubnet(address, Number(bits), version === 4 ? "ipv4" : "ipv6")
      else
        throw new UsageError(
          `--never: ${entry} in ${name} is not a network: expected one such as 192.0.2.0/24`,
        )
    }
  }

  /** Notes a refused client, by any of its names. */
  refused(...names: readonly (string | undefined)[]): void {
    for (const name of names) {
      if (name === undefined || this.#checked.has(name)) continue
      this.#checked.add(name)
      const [address = ""] = name.split("/")
      const version = isIP(address)
      const isListed = version !== 0 && this.#networks.check(address, version === 4 ? "ipv4" : "ipv6")
      if (isListed || this.#texts.has(name)) this.#found.add(name)
    }
  }

  get found(): readonly string[] {
    return [...this.#found]
  }
}
