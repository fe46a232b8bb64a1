import { StoreUnavailableError } from "@sluice/core"
import type { ChangeAction, ClientState } from "../page/found-counter.ts"
import type { VisitorRole } from "./access.ts"
import type { DashboardChange } from "./audit.ts"
import { type ClientHandle, type Clients, reasonOf, stateOf } from "./clients.ts"
import type { Operators } from "./operators.ts"
import { CallRefused, type Visit } from "./visit.ts"

const EXPECTED =
  'The body must be JSON: {"action": "blocked", "service": "…", "rule": "…", "id": "…", "text": "…", "for": "1 hour"}'

/** Resets, blocks and unblocks clients and grants them units for operators, and reports each change. */
export class Changes {
  readonly #clients: Clients
  readonly #operators: Operators
  readonly #report: (change: DashboardChange, request: unknown) => void

  constructor(
    clients: Clients,
    operators: Operators,
    report: (change: DashboardChange, request: unknown) => void,
  ) {
    this.#clients = clients
    this.#operators = operators
    this.#report = report
  }

  /** Makes the change that the body describes, and returns the client's new state. Rejects with the reason. */
  async make(
    visit: Visit,
    role: VisitorRole,
    body: Readonly<Record<string, unknown>>,
  ): Promise<ClientState | string> {
    const text = (name: string, otherwise?: string): string => {
      const value = body[name] ?? otherwise
      if (typeof value !== "string") throw new CallRefused(400, EXPECTED)
      return value
    }
    const [action, service, rule] = [text("action"), text("service"), text("rule")]
    const amount = text(action === "granted" ? "units" : "for", "")
    const act = ACTIONS.get(action)
    if (act === undefined) throw new CallRefused(400, EXPECTED)
    await this.#operators.require(visit, role, service)
    const client = await this.#clients.byId(service, rule, text("id"), text("text"))
    const change: DashboardChange = {
      ...{ action: action as ChangeAction, service, rule, client: client.key },
      ...(action === "blocked" && { for: amount }),
      ...(action === "granted" && { units: unitsIn(amount) }),
    }
    try {
      await act(client, amount)
    } catch (failure) {
      this.#report({ ...change, failure }, visit.request)
      if (!(failure instanceof StoreUnavailableError)) throw failure
      const advice =
        action === "granted"
          ? "Search again when the store responds. Another grant could add the units twice."
          : `The client may not have been ${action}. Repeat the change when the store responds.`
      throw new CallRefused(503, `${reasonOf(failure)} ${advice}`)
    }
    this.#report(change, visit.request)
    return stateOf(client).catch(reasonOf)
  }
}

const ACTIONS: ReadonlyMap<string, (client: ClientHandle, amount: string) => Promise<void>> = new Map([
  ["reset", ({ limiter, request }) => limiter.reset(request)],
  ["unblocked", ({ limiter, request }) => limiter.unblock(request)],
  ["blocked", block],
  ["granted", grant],
])

/** Returns the number of units in the text. Throws if it has none. */
function unitsIn(text: string): number {
  const units = Number(text)
  if (Number.isSafeInteger(units) && units > 0) return units
  throw new CallRefused(400, `${JSON.stringify(text)} is not a number of units. Give a whole number above 0.`)
}

async function grant({ limiter, request, hasPeriods }: ClientHandle, amount: string): Promise<void> {
  const units = unitsIn(amount)
  if (!hasPeriods)
    throw new CallRefused(400, "The rule counts by a window, not by per, or does not count this client.")
  await limiter.grant(request, units)
}

async function block({ limiter, request }: ClientHandle, duration: string): Promise<void> {
  // The limiter would read a number as milliseconds, and an operator may mean seconds.
  if (!/[a-z]/i.test(duration))
    throw new CallRefused(
      400,
      `${JSON.stringify(duration)} has no unit. Give one, such as "1 hour" or "15m".`,
    )
  const [explained] = await limiter.explain(request)
  if (explained?.shadow === true)
    throw new CallRefused(400, "This is a shadow rule. It never refuses, so it cannot block a client.")
  if (explained?.applies === false)
    throw new CallRefused(
      400,
      "The rule does not count this client, so it cannot block it. Change its allow list.",
    )
  await limiter.block(request, { for: duration })
}
