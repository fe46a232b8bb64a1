import { type Activity, type ActivityOverview, recordActivity, type ServiceOverview } from "@sluice/dashboard"
import { redisActivity } from "@sluice/redis"
import type { Cluster, Redis } from "ioredis"
import type { TopList, TopQuery } from "./clients-backend.ts"
import { topAnswer } from "./top-answer.ts"

/** The board on which the processes of apps share what they have recorded. */
export class RedisBoard {
  readonly #activity: Activity
  #failure: unknown

  constructor(client: Redis | Cluster, prefix: string | undefined) {
    const board = redisActivity({ client, prefix })
    const shared: typeof board = {
      exchange: (process, text, isWatching) =>
        board.exchange(process, text, isWatching).catch((error: unknown) => {
          this.#failure = error
          throw error
        }),
    }
    this.#activity = recordActivity([], { shared })
    // Only read the board, because there is nothing to write.
    this.#activity.stop()
  }

  /** Lists clients. Takes 1.5 s if nobody watches yet. Rejects with StoreUnavailableError. */
  async top(query: TopQuery): Promise<TopList> {
    const { services, atMs, missing } = await this.#read()
    const { service } = query
    const found = services.filter((each) => service === undefined || each.service === service)
    const nothing = service === undefined ? [] : [{ service, instances: [], rules: [], refusals: [] }]
    const reasons = [found.length === 0 ? nobodyText(service, services) : [], missing ?? []].flat()
    return {
      services: (found.length === 0 ? nothing : found).map((each) => topAnswer(each, atMs, query)),
      ...(reasons.length > 0 && { missing: reasons.join(" ") }),
    }
  }

  async #read(): Promise<ActivityOverview> {
    this.#failure = undefined
    const overview = await this.#activity.overviewOfAll()
    if (this.#failure !== undefined) throw this.#failure
    return overview
  }
}

function nobodyText(service: string | undefined, services: readonly ServiceOverview[]): string {
  if (service !== undefined && services.length > 0) {
    const names = services.map(({ service }) => JSON.stringify(service)).join(", ")
    return `No process shares what it records of service ${JSON.stringify(service)}, but of ${names}.`
  }
  return (
    "No process shares what it records in this Redis. In the app, pass shared: redisActivity({ client }) to dashboard() " +
    "or recordActivity(). If it has a prefix, give --prefix."
  )
}
