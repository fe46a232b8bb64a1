import { createLimiter, type RequestFacts } from "@sluice/core"
import {
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  GraphQLError,
} from "graphql"
import { type ComplexityEstimator, getComplexity } from "graphql-query-complexity"
import type { Surroundings } from "../surroundings.ts"

/** A field costs 1, and the fields of a list as often as the client asks for. */
const estimate: ComplexityEstimator = ({
  args: { first = 1 },
  childComplexity: fields,
}) => Math.min(1 + Math.max(first, 1) * fields, 1_000_000)

/** Returns the number of fields in a result. */
function sizeOf(data: unknown): number {
  const values = Object.values((typeof data === "object" && data) || {})
  return values.reduce(
    (sum, value) => sum + sizeOf(value),
    Array.isArray(data) ? 0 : values.length,
  )
}

/**
 * Returns an `execute` for any GraphQL server. The context has the client's
 * `remoteAddress` and `headers`.
 */
export function createExecute(surroundings: Surroundings = {}) {
  const rule = { name: "fields", limit: 1_000, window: "1 minute" }
  const limiter = createLimiter({ ...surroundings, ...rule })
  return async (args: ExecutionArgs): Promise<ExecutionResult> => {
    const { schema, document: query, variableValues, contextValue } = args
    const variables = variableValues ?? {}
    const cost = getComplexity({ schema, query, variables, estimators: [estimate] })
    const decision = await limiter.decide(contextValue as RequestFacts, { cost })
    const extensions = { cost, retryAfterMs: decision.retryAfterMs }
    if (!decision.allowed)
      return { errors: [new GraphQLError("rate-limited", { extensions })] }
    const result = await execute(args)
    await limiter.settle(decision, Math.max(1, sizeOf(result.data)))
    return result
  }
}
