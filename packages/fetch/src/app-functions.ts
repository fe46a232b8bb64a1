import { InvalidOptionError, type RequestFacts } from "@sluice/core"
import type { ClientAddress } from "./client-address.ts"

/** Facts of a request that a `Request` does not contain, but that the framework may know. */
export type FrameworkFacts = Pick<RequestFacts, "routedUrl" | "route" | "params" | "body">

/** A function of the app that reads a request. */
type Reads<Context, Result> = (request: Request, context: Context) => Result

/** The app's functions that read a request. */
export interface AppFunctions<Context> {
  readonly clientAddress: ClientAddress<Context>
  readonly facts: Reads<Context, FrameworkFacts>
}

/** The results that are accepted from a function, and the result that replaces all other results. */
interface Accepted<Result> {
  /** The name of the option that contains the function. */
  readonly path: string
  readonly accepts: (result: unknown) => boolean
  readonly accepted: string
  readonly otherwise: Result
}

export const ADDRESS: Accepted<string | undefined> = {
  path: "clientAddress",
  accepts: (result) => result === undefined || typeof result === "string",
  accepted: "the address of the connection's peer, or undefined",
  otherwise: undefined,
}

export const FACTS: Accepted<FrameworkFacts> = {
  path: "facts",
  accepts: (result) => typeof result === "object" && result !== null && !("then" in result),
  accepted: "an object with routedUrl, route, params or body",
  otherwise: {},
}

/**
 * Returns a function that never throws. If the app's function fails or returns an invalid result, such as a promise,
 * the address or the facts count as unknown, and `onFault` is called.
 */
export function withoutErrors<Context, Result>(
  read: Reads<Context, Result>,
  { path, accepts, accepted, otherwise }: Accepted<Result>,
  onFault: (error: InvalidOptionError) => void,
): Reads<Context, Result> {
  return (request, context) => {
    let message: string
    try {
      const result = read(request, context)
      if (accepts(result)) return result
      // Catch the error, because a promise that rejects later would end the process.
      Promise.resolve(result).catch(() => undefined)
      message = `returned ${Object.prototype.toString.call(result)}`
    } catch (error) {
      message = `failed: ${error}`
    }
    onFault(new InvalidOptionError([{ path, message, accepted }]))
    return otherwise
  }
}
