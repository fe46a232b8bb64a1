import { type DecisionStep, type Guard, respond } from "@sluice/core/adapters"
import type { FastifyReply, FastifyRequest } from "fastify"
import { type Done, FastifyExchange } from "./exchange.ts"
import { FastifyFacts } from "./facts.ts"

/** Lets a guard check a request, either with the rules of one step or with all rules. */
export function decide(
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
  step?: DecisionStep,
): void {
  const facts = new FastifyFacts(request, request.raw)
  const later = respond(guard, facts, new FastifyExchange(request, reply.raw, done, reply), step)
  // Fastify also passes an error that a hook throws synchronously to `done`.
  if (later instanceof Promise) later.catch(done)
}
