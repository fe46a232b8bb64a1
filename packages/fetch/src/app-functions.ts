import { InvalidOptionError, type RequestFacts } from "@sluice/core"
import { contexts } from "./context.ts"

/** Facts of a request that a `Request` does not contain, but that the framework may know. */
export type FrameworkFacts = Pick<RequestFacts, "routedUrl" | "route" | "params" | "body">

/** The functions of the app or a framework that read a request. */
export interface AppFunctions<Subject> {
  readonly clientAddress: (subject: Subject) => string | undefined
  readonly facts: (subject: Subject) => FrameworkFacts
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
  accepted:
    "a function that returns the address of the connection, or () => undefined behind proxies or without a rule by address",
  otherwise: undefined,
}

export const FACTS: Accepted<FrameworkFacts> = {
  path: "facts",
  accepts: (result) => typeof result === "object" && result !== null && !("then" in result),
  accepted: "a function that returns an object with routedUrl, route, params or body",
  otherwise: {},
}

/** Returns the error for an option that is missing or wrong. */
export function faultOf(
  { path, accepted }: { readonly path: string; readonly accepted: string },
  message: string,
): InvalidOptionError {
  return new InvalidOptionError([{ path, message, accepted }])
}

/**
 * Returns a function that never throws. If the app's function fails or returns an invalid result, such as a promise,
 * the address or the facts count as unknown, and `onFault` is called.
 */
export function withoutErrors<Subject extends object, Result>(
  read: (subject: Subject, context: never) => Result,
  option: Accepted<Result>,
  onFault: (error: InvalidOptionError) => void,
): (subject: Subject) => Result {
  if (typeof read !== "function") throw faultOf(option, "is not a function")
  return (subject) => {
    let message: string
    try {
      const result = read(subject, contexts.get(subject) as never)
      if (option.accepts(result)) return result
      // Catch the error, because a promise that rejects later would end the process.
      Promise.resolve(result).catch(() => undefined)
      message = `returned ${Object.prototype.toString.call(result)}`
    } catch (error) {
      message = `failed: ${error}`
    }
    onFault(faultOf(option, message))
    return option.otherwise
  }
}
