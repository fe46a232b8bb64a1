import type { Clock } from "@sluice/core"
import type { Activity } from "../activity.ts"
import type { ActivityOverview } from "../overview/overview.ts"
import type { KeyForms } from "./shown-keys.ts"
import { UPDATE_MS } from "./viewers.ts"

/** Most clients in each list of all rules together. A rule has at least 5 clients, and at most 50. */
const MOST_CLIENTS = 1_000

/** The data of the page. All viewers share one string, which is written at most once in two seconds. */
export class Board {
  readonly #activity: Pick<Activity, "overview" | "overviewOfAll">
  readonly #showKey: KeyForms["show"]
  readonly #clock: Clock
  /** Whether the overview includes other processes, which must be asked. */
  readonly #isShared: boolean
  #writtenMs = Number.NEGATIVE_INFINITY
  #overview: ActivityOverview | undefined
  /** Resolves when the overview includes the other processes. Undefined unless they are being asked. */
  #reading: Promise<void> | undefined
  #json: Buffer = Buffer.alloc(0)
  #event: Buffer = Buffer.alloc(0)

  constructor(
    activity: Pick<Activity, "overview" | "overviewOfAll">,
    isShared: boolean,
    showKey: KeyForms["show"],
    clock: Clock,
  ) {
    this.#activity = activity
    this.#isShared = isShared
    this.#showKey = showKey
    this.#clock = clock
  }

  /** Returns the overview as JSON. */
  json(): Buffer {
    this.#update()
    return this.#json
  }

  /** Returns the overview as a server-sent event. */
  event(): Buffer {
    this.#update()
    return this.#event
  }

  /** Resolves with the overview of all processes, which is at most two seconds old. */
  async overview(): Promise<ActivityOverview> {
    this.#update()
    await this.#reading
    return this.#overview as ActivityOverview
  }

  #update(): void {
    const ageMs = Math.abs(this.#clock.now() - this.#writtenMs)
    // Allow for timers that are early. A clock may also have been set back.
    if (ageMs < UPDATE_MS / 2) return
    // The answers of the other processes belong to the next update. Before the first one, show this process alone.
    if (!this.#isShared || ageMs > 3 * UPDATE_MS) this.#write(this.#activity.overview())
    else this.#writtenMs = this.#clock.now()
    if (this.#isShared && this.#reading === undefined) this.#reading = this.#read()
  }

  async #read(): Promise<void> {
    this.#write(await this.#activity.overviewOfAll())
    this.#reading = undefined
  }

  #write(overview: ActivityOverview): void {
    this.#writtenMs = this.#clock.now()
    this.#overview = overview
    const json = JSON.stringify(shortened(overview, this.#showKey))
    this.#json = Buffer.from(json)
    this.#event = Buffer.from(`retry: ${UPDATE_MS}\ndata: ${json}\n\n`)
  }
}

/** Returns the overview with shown keys and shorter lists. */
function shortened({ services, ...others }: ActivityOverview, showKey: KeyForms["show"]): ActivityOverview {
  const rulesOfAll = services.reduce((sum, { rules }) => sum + rules.length, 0)
  const most = Math.min(50, Math.max(5, Math.floor(MOST_CLIENTS / rulesOfAll)))
  const withShownKey = <Each extends { readonly key: string }>(each: Each): Each => ({
    ...each,
    key: showKey(each.key),
  })
  return {
    ...others,
    services: services.map((service) => ({
      ...service,
      rules: service.rules.map((rule) => ({
        ...rule,
        refused: rule.refused.slice(0, most).map(withShownKey),
        busy: rule.busy.slice(0, most).map(withShownKey),
      })),
      refusals: service.refusals.map(withShownKey),
    })),
  }
}
