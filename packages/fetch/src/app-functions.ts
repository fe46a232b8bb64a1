import { InvalidOptionError, type RequestFacts } from "@sluice/core"
import type { ClientAddress } from "./client-address.ts"

/** Facts of a request that a `Request` does not contain, but the framework may know. */
export type FrameworkFacts = Pick<RequestFacts, "routedUrl" | "route" | "params" | "body">

/** The app's functions that read a request. */
export interface AppFunctions<Context> {
  readonly clientAddress: ClientAddress<Context>
  readonly facts: (request: Request, context: Context) => FrameworkFacts
}

interface Given<Context> {
  readonly clientAddress: ClientAddress<Context>
  readonly facts: AppFunctions<Context>["facts"] | undefined
}

/** The results of a function that are accepted, and the result that stands for all others. */
interface Accepted<Result> {
  readonly accepts: (result: unknown) => boolean
  readonly accepted: string
  readonly otherwise: Result
}

const ADDRESS: Accepted<undefined> = {
  accepts: (result) => result === undefined || typeof result === "string",
  accepted: "the address of the connection's peer, or undefined",
  otherwise: undefined,
}

const FACTS: Accepted<FrameworkFacts> = {
  accepts: (result) => typeof result === "object" && result !== null && !("then" in result),
  accepted: "an object with routedUrl, route, params or body",
  otherwise: {},
}

/**
 * Returns functions that never throw. If a function of the app fails or returns an invalid result, such as a promise,
 * the address or the facts count as unknown, and `onFault` is called.
 */
export function withoutErrors<Context>(
  { clientAddress, facts }: Given<Context>,
  onFault: (error: InvalidOptionError) => void,
): AppFunctions<Context> {
  const guarded =
    <Result>(path: string, read: (request: Request, context: Context) => Result, by: Accepted<Result>) =>
    (request: Request, context: Context): Result => {
      const fault = (message: string): Result => {
        onFault(new InvalidOptionError([{ path, message, accepted: by.accepted }]))
        return by.otherwise
      }
      try {
        const result = read(request, context)
        if (by.accepts(result)) return result
        // A promise may reject later, which would end the process.
        Promise.resolve(result).catch(() => undefined)
        return fault(`returned ${Object.prototype.toString.call(result)}`)
      } catch (error) {
        return fault(`failed: ${error}`)
      }
    }
  return {
    clientAddress: guarded<string | undefined>("clientAddress", clientAddress, ADDRESS),
    facts: guarded("facts", facts ?? (() => FACTS.otherwise), FACTS),
  }
}
