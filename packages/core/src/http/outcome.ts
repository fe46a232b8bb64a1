import type { Decision } from "../limiter/decision.ts"
import type { HeaderLine } from "./headers/writer.ts"
import type { Rejection } from "./rejection.ts"

/** What an adapter does with a request. */
export interface Outcome {
  /** For the framework's request: of all mounts so far, the decision that binds. */
  readonly decision: Decision
  /** To be set on the response, in place of what an earlier mount has set under the same name. */
  readonly headers: readonly HeaderLine[]
  /** Names of what an earlier mount has set and holds no more, to be taken off the response first. */
  readonly removed: readonly string[]
  /** The answer, when the request is refused. */
  readonly rejection?: Rejection
}
