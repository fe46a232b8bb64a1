import { changedNothing } from "./failure.ts"

/** Watches what becomes of the attempts of one write: `command.middlewareStack.add(attempts.watch, WATCH_PLACE)`. */
export interface Attempts {
  /**
   * Whether one of them may have changed the table without an answer: it was sent, and what came back was no refusal.
   * The SDK sends such a call again, and then a refusal of the condition may be due to the first attempt itself.
   */
  readonly mayHaveRun: boolean
  readonly watch: <Request, Response>(
    next: (request: Request) => Promise<Response>,
  ) => (request: Request) => Promise<Response>
}

/** The last place before a request is sent, inside of the SDK's retries: each attempt passes it. */
export const WATCH_PLACE = { step: "finalizeRequest", priority: "low", name: "sluiceAttempts" } as const

/** Watches one command that is yet to be sent. */
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
