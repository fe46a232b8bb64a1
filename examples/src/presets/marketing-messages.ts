import { createLimiter } from "@sluice/core"
import type { Surroundings } from "./surroundings.ts"

/** A message and whom it is for. */
export interface Message {
  readonly userId: string
  readonly text: string
}

/** What became of a message: sent, or kept back for so many milliseconds. */
export type Sent = { readonly sent: true } | { readonly sent: false; readonly retryAfterMs: number }

/** What sends messages: at most five a day to a user. */
export function limitMessages(
  send: (message: Message) => Promise<void>,
  surroundings: Pick<Surroundings, "clock"> = {},
): (message: Message) => Promise<Sent> {
  const limiter = createLimiter<Message>({
    ...surroundings,
    name: "marketing",
    field: "user",
    fields: { user: ({ userId }) => userId },
    limit: 5,
    window: "1 day",
  })
  return async (message) => {
    // To keep a message back is an ordinary outcome here, so `decide`, which does not throw.
    const decision = await limiter.decide(message)
    if (!decision.allowed) return { sent: false, retryAfterMs: decision.retryAfterMs }
    try {
      await send(message)
    } catch (error) {
      // What did not arrive has annoyed nobody.
      await limiter.refund(decision)
      throw error
    }
    return { sent: true }
  }
}
