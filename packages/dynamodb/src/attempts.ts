import { changedNothing } from "./failure.ts"

/** Watches the attempts of one write: `command.middlewareStack.add(attempts.watch, WATCH_PLACE)`. */
export interface Attempts {
  /**
   * True if an attempt may have changed the table without an answer: it was sent, and the response was not a refusal.
   * The SDK sends such a call again. If the condition then fails, the first attempt itself may be the cause.
   */
  readonly mayHaveRun: boolean
  readonly watch: <Request, Response>(
    next: (request: Request) => Promise<Response>,
  ) => (request: Request) => Promise<Response>
}

/** The last place before a request is sent, inside the SDK's retries, so that every attempt passes it. */
export const WATCH_PLACE = { step: "finalizeRequest", priority: "low", name: "sluiceAttempts" } as const

/** Creates a watcher for one command that has not been sent yet. */
export function watchAttempts(): Attempts {
  let unanswered = 0
  return {
    get mayHaveRun() {
      return unanswered > 0
    },
    watch: (next) => async (request) => {
      unanswered += 1
      try {
        const response = await next(request)
        unanswered -= 1
        return response
      } catch (error) {
        if (changedNothing(error)) unanswered -= 1
        throw error
      }
    },
  }
}
