import { InvalidOptionError } from "../../ground/errors.ts"
import { ignore } from "../../ground/time.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import { notALimiter, RequestLimiter } from "../../limiter/request-limiter.ts"
import type { FactsReader } from "../../request/facts-readers.ts"
import { type RefusalOptions, readRefusalOption } from "../refusal-error.ts"
import type { Guard, GuardOptions } from "./guard.ts"
import { LimiterGuard } from "./limiter-guard.ts"

/**
 * Creates a guard for an adapter. `reader` reads the facts of the framework's requests. With `reader`, the limiter
 * accepts requests that no guard has checked, for example in `limiter.peek(req)` in a handler.
 * @throws {@link InvalidOptionError}
 */
export function createGuard<Request extends object, Response = unknown>(
  options: GuardOptions<Request, Response>,
  reader?: FactsReader,
): Guard<Request> {
  return guardOf(options, reader, false)
}

/**
 * Creates a guard like `createGuard`, for an adapter whose options include `throwOnRefusal`.
 * @throws {@link InvalidOptionError}
 */
export function createThrowingGuard<Request extends object, Response = unknown>(
  options: GuardOptions<Request, Response> & RefusalOptions,
  reader: FactsReader,
): Guard<Request> {
  const { throws, options: others } = readRefusalOption<GuardOptions<Request, Response>>(options)
  return guardOf(others, reader, throws)
}

function guardOf<Request extends object, Response>(
  options: GuardOptions<Request, Response>,
  reader: FactsReader | undefined,
  throws: boolean,
): Guard<Request> {
  const [limiter, close] = isShared(options)
    ? [sharedLimiter(options), ignore]
    : [createLimiter(options) as RequestLimiter<Request>, () => limiter.close()]
  if (reader !== undefined) limiter.readFactsWith(reader)
  return new LimiterGuard(limiter, close, throws)
}

type Shared<Request> = Extract<GuardOptions<Request>, { readonly limiter: unknown }>

function isShared<Request, Response>(options: GuardOptions<Request, Response>): options is Shared<Request> {
  return typeof options === "object" && options !== null && "limiter" in options
}

function sharedLimiter<Request>(options: Shared<Request>): RequestLimiter<Request> {
  const problems = Object.keys(options)
    .filter((name) => name !== "limiter")
    .map((path) => ({
      path,
      message: "is given together with limiter",
      accepted: "limiter alone, with this option given to createLimiter()",
    }))
  if (!(options.limiter instanceof RequestLimiter)) {
    problems.push({ path: "limiter", ...notALimiter(options.limiter) })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems)
  return options.limiter as RequestLimiter<Request>
}
