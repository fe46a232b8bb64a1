import { createLimiter, type Decision } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

/** A message and its recipient. */
export interface Message {
  readonly userId: string
  readonly text: string
}

/**
 * Returns a function that sends messages, at most five per day to each user. It
 * returns whether it sent the message.
 */
export function limitMessages(
  send: (message: Message) => Promise<void>,
  surroundings: Surroundings = {},
) {
  const fields = { user: ({ userId }: Message) => userId }
  const rate = { name: "marketing", field: "user", limit: 5, window: "1 day" }
  const limiter = createLimiter<Message>({ ...surroundings, ...rate, fields })
  return async (message: Message): Promise<Decision> => {
    // Use `decide`, which does not throw: holding back a message is a normal
    // outcome here.
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
