import { createLimiter, type Decision } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

/** A message and whom it is for. */
export interface Message {
  readonly userId: string
  readonly text: string
}

/** What sends messages, at most five a day to a user: the decision tells whether this one was, and else for how long it waits. */
export function limitMessages(
  send: (message: Message) => Promise<void>,
  surroundings: Pick<Surroundings, "clock"> = {},
): (message: Message) => Promise<Decision> {
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
    if (!decision.allowed) return decision
    try {
      await send(message)
    } catch (error) {
      // What did not arrive has annoyed nobody.
      await limiter.refund(decision)
      throw error
    }
    return decision
  }
}
