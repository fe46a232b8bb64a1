/** A descriptor in a configuration file of Envoy's rate limit service. */
export interface ConfiguredDescriptor {
  readonly key: string
  readonly value?: string
  readonly rate_limit?: {
    readonly unit?: string
    readonly requests_per_unit?: number
    readonly unlimited?: boolean
  }
  readonly shadow_mode?: boolean
  readonly descriptors?: readonly ConfiguredDescriptor[]
}

export type Entry = readonly [key: string, value: string]

const SECONDS: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
}

/** The characters of an ISO date that name a calendar period in UTC. */
const DATE_LENGTHS: Readonly<Record<string, number>> = { month: 7, year: 4 }

/** Returns the window of a unit that contains a time. Months are those of USE_CALENDAR_MONTH_RATE_LIMIT. */
function windowAt(unit: string, nowMs: number): number | string {
  const length = DATE_LENGTHS[unit]
  if (length !== undefined) return new Date(nowMs).toISOString().slice(0, length)
  return Math.floor(nowMs / ((SECONDS[unit] as number) * 1_000))
}

/**
 * Decides like Envoy's rate limit service. In Envoy's service, GetLimit in src/config/config_impl.go finds the limit,
 * and src/limiter/base_limiter.go counts in windows that begin at
 * multiples of the unit. This model does not support
 * values with `*`.
 */
export class EnvoyModel {
  readonly #descriptors: readonly ConfiguredDescriptor[]
  readonly #counts = new Map<string, number>()

  constructor(descriptors: readonly ConfiguredDescriptor[]) {
    this.#descriptors = descriptors
  }

  ask(entries: readonly Entry[], hits: number, nowMs: number): "OK" | "OVER_LIMIT" {
    const found = this.#find(entries)
    const limit = found?.rate_limit
    if (found === undefined || limit === undefined || limit.unlimited === true) return "OK"
    const counter = JSON.stringify([entries, windowAt(limit.unit ?? "", nowMs)])
    const count = (this.#counts.get(counter) ?? 0) + hits
    this.#counts.set(counter, count)
    return count > (limit.requests_per_unit ?? 0) && found.shadow_mode !== true ? "OVER_LIMIT" : "OK"
  }

  #find(entries: readonly Entry[]): ConfiguredDescriptor | undefined {
    let level = this.#descriptors
    for (const [index, [key, value]] of entries.entries()) {
      const next =
        level.find((each) => each.key === key && each.value !== undefined && each.value === value) ??
        level.find((each) => each.key === key && each.value === undefined)
      if (next === undefined) return undefined
      if (index === entries.length - 1) return next
      level = next.descriptors ?? []
    }
    return undefined
  }
}
