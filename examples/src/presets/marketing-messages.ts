import { createLimiter, type Decision } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

/** A message and its recipient. */
export interface Message {
  readonly userId: string
  readonly text: string
}

/**
 * Returns a function that sends messages, at most five per day to each user. Its decision contains whether the message
 * was sent, and otherwise how long to wait.
 */
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
    // Use `decide`, which does not throw: holding back a message is a normal outcome here.
    const decision = await limiter.decide(message)
    if (!decision.allowed) return decision
    try {
      await send(message)
    } catch (error) {
      // The user did not receive the message, so it does not count.
      await limiter.refund(decision)
      throw error
    }
    return decision
  }
}
