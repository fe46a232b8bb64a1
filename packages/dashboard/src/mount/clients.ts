import {
  addressGroup,
  InvalidOptionError,
  type Limiter,
  type RequestFacts,
  withoutCredentials,
} from "@sluice/core"
import { textOf } from "@sluice/core/kit"
import type { RuleOverview } from "../overview/overview.ts"
import type { ClientState, FoundCounter, FoundCounters } from "../page/found-counter.ts"
import type { Board } from "./board.ts"
import { type KeyForms, valuesOf } from "./shown-keys.ts"
import { CallRefused } from "./visit.ts"

/** Most counters that a search reads. Reading one calls the store. */
const MOST_READ = 20
/** Most rules that a search tries for a client that they do not list. Trying one does not call the store. */
const MOST_TRIED = 200

const CHANGED = "The rule has changed, and now counts clients by something else."

/** Returns the limiters of a service in this process. */
export type LimitersOf = (service: string) => Promise<readonly Limiter<never>[]>

/** A client under a rule, with the limiter that counts it. */
export interface ClientHandle {
  readonly limiter: Limiter<never>
  /** Names the client in calls of the limiter. */
  readonly request: RequestFacts
  /** The client's part of the counter's key. */
  readonly key: string
  /** Whether the rule counts by calendar periods, in which units can be granted. */
  readonly hasPeriods: boolean
}

/** A rule with the keys of the clients that it lists. */
interface ListingRule extends Pick<RuleOverview, "rule" | "refused" | "busy"> {
  readonly service: string
  readonly keys: readonly string[]
}

/** Finds the clients of limiters, and reads their counters. */
export class Clients {
  readonly #board: Board
  readonly #limitersOf: LimitersOf
  readonly #forms: KeyForms

  constructor(board: Board, limitersOf: LimitersOf, forms: KeyForms) {
    this.#board = board
    this.#limitersOf = limitersOf
    this.#forms = forms
  }

  /**
   * Returns the listed clients with this address, value of a field, or shown key. If the text is an address or value, also
   * returns its counters under the rules with one field that do not list it.
   */
  async find(given: string): Promise<Pick<FoundCounters, "clients" | "unread">> {
    const text = given.trim()
    const spellings = spellingsOf(text)
    const isWanted = (key: string): boolean =>
      this.#forms.isShownAs(key, text) || valuesOf(key).some((value) => spellings.includes(value))
    const rules = await this.#rules()
    const listed = rules.flatMap((rule) => rule.keys.filter(isWanted).map((key) => ({ rule, key })))
    const others = rules.filter((each) => !listed.some(({ rule }) => rule === each)).slice(0, MOST_TRIED)
    const unlisted = await Promise.all(
      others.map(async (rule) => {
        const key = await this.#unlistedKey(rule.service, rule.rule, text)
        return key === undefined ? [] : [{ rule, key }]
      }),
    )
    const all = [...listed, ...unlisted.flat()]
    return {
      clients: await Promise.all(all.slice(0, MOST_READ).map(({ rule, key }) => this.#found(rule, key))),
      unread: Math.max(0, all.length - MOST_READ),
    }
  }

  /** Finds a client by the `id` of a found client, and by the text of that search. Rejects with the reason. */
  async byId(service: string, rule: string, id: string, text: string): Promise<ClientHandle> {
    const listing = (await this.#rules()).find((each) => each.service === service && each.rule === rule)
    const keys = [...(listing?.keys ?? []), await this.#unlistedKey(service, rule, text)]
    const key = keys.find((each) => each !== undefined && this.#forms.id(each) === id)
    if (key === undefined)
      throw new CallRefused(
        404,
        "The lists no longer contain this client. Search for the address or user again.",
      )
    return this.#counted(service, rule, key)
  }

  async #found({ service, rule, refused, busy }: ListingRule, key: string): Promise<FoundCounter> {
    const shown = this.#forms.show(key)
    const refusals = refused.find((client) => client.key === key)
    const requests = busy.find((client) => client.key === key)?.requests
    const counted = this.#counted(service, rule, key)
    return {
      ...{ service, rule, key: shown, id: this.#forms.id(key) },
      ...(refusals !== undefined && { refused: { ...refusals, key: shown } }),
      ...(requests !== undefined && { requests }),
      isShared: await counted.then(({ limiter }) => limiter.status.isShared === true).catch(() => false),
      state: await counted.then(stateOf).catch(reasonOf),
    }
  }

  async #rules(): Promise<readonly ListingRule[]> {
    const { services } = await this.#board.overview()
    return services.flatMap(({ service, rules, refusals }) =>
      rules.map(({ rule, refused, busy }) => {
        const last = refusals.filter((refusal) => refusal.rule === rule)
        const keys = new Set([...refused, ...busy, ...last].map(({ key }) => key))
        return { service, rule, refused, busy, keys: [...keys] }
      }),
    )
  }

  /** Returns the key under which a rule with one field counts a value. Returns undefined if the value does not fit. */
  async #unlistedKey(service: string, rule: string, text: string): Promise<string | undefined> {
    if (this.#forms.isHash(text)) return undefined
    for (const spelling of spellingsOf(text)) {
      const counted = await this.#counted(service, rule, [spelling]).catch(() => undefined)
      if (counted !== undefined) return counted.key
    }
    return undefined
  }

  /** Names a client to the limiter that has the rule. Rejects with the reason if no limiter of this process accepts it. */
  async #counted(service: string, rule: string, key: string | readonly [string]): Promise<ClientHandle> {
    let reason: unknown = new CallRefused(404, `This process has no limiter of the service ${service}.`)
    for (const limiter of await this.#limitersOf(service)) {
      const request = limiter.client(rule, key)
      try {
        const [explained] = await limiter.explain(request)
        const counter = explained?.counter ?? explained?.penalty
        return {
          ...{ limiter, request, key: typeof key === "string" ? key : (counter?.partition ?? key[0]) },
          hasPeriods: explained?.counter?.policy.periods !== undefined,
        }
      } catch (error) {
        // The message contains the key, and the visitor may know only its hash.
        reason = isOfClient(error) ? new CallRefused(404, CHANGED) : error
      }
    }
    throw reason
  }
}

/** Returns the state of a client. Rejects if the store does not respond, or if the rule's limit is unknown. */
export async function stateOf({ limiter, request, hasPeriods }: ClientHandle): Promise<ClientState> {
  const { checks, degraded } = await limiter.peek(request)
  const [check] = checks
  if (check === undefined) return { isCounted: false }
  const { shadow, limit, granted = 0, remaining = 0, resetAfterMs, retryAfterMs, refusal } = check
  return {
    ...{ isCounted: true, degraded, shadow, limit, remaining, resetAfterMs },
    ...(hasPeriods && { granted }),
    // JSON has no Infinity.
    retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : null,
    ...(refusal !== undefined && { refusal }),
  }
}

/** Returns what an error means to the visitor. */
export function reasonOf(error: unknown): string {
  if (isAboutRequest(error))
    return "Unknown, because the limit, window or anchor is a function of the request."
  return withoutCredentials(error instanceof Error ? error.message : textOf(error))
}

/** Returns a value, and the address that it contains in its canonical spelling. */
function spellingsOf(given: string): readonly string[] {
  const text = given.trim()
  return [...new Set([text, addressGroup(text) ?? text])]
}

function isOfClient(error: unknown): boolean {
  return error instanceof InvalidOptionError && error.problems[0]?.path === "client"
}

/** True for the error about a limit that is a function, and from `block` for a client that the rule never refuses. */
function isAboutRequest(error: unknown): boolean {
  return error instanceof InvalidOptionError && error.problems[0]?.path === "request"
}
