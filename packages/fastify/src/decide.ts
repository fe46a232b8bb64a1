import { type DecisionStep, type Guard, respond } from "@sluice/core"
import type { FastifyReply, FastifyRequest } from "fastify"
import { type Done, FastifyExchange } from "./exchange.ts"
import { FastifyFacts } from "./facts.ts"
import { ThrowingExchange } from "./refusal.ts"

/** Lets a guard decide on a request, at one step or by all rules at once. */
export type Decide = (
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
  step?: DecisionStep,
) => void

/** Returns a function that lets guards decide. With `throws`, refusals are passed to the app's error handler. */
export function decideWith(throws: boolean): Decide {
  const Exchange = throws ? ThrowingExchange : FastifyExchange
  return (guard, request, reply, done, step) => {
    const later = respond(
      guard,
      new FastifyFacts(request, request.raw),
      new Exchange(request, reply, done),
      step,
    )
    // Fastify also passes an error that a hook throws synchronously to `done`.
    if (later instanceof Promise) later.catch(done)
  }
}
