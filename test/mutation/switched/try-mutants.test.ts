import { expect, it } from "vitest"
import { instrument } from "./instrument.ts"
import { tryMutants } from "./try-mutants.ts"

const FOLDER = "test/mutation/switched/testing"

it("tells mutants that a test notices from those that none does, though they hang or leave something behind", async () => {
  const instrumented = await instrument([`${FOLDER}/sources.ts`])
  const { mutants } = instrumented
  const { noticed, reached } = await tryMutants(instrumented, new Set(mutants.map(({ id }) => id)), {
    tests: [`${FOLDER}/sources.cases.ts`],
    needsRedis: false,
    timeoutMs: 60_000,
    // A machine that is busy with other tests may stand still for a while.
    graceMs: 5_000,
  })
  const told = mutants.map(({ id, location: { start }, mutatorName, replacement }) => {
    const fate = noticed.has(id) ? "noticed" : reached.has(id) ? "survived" : "not reached"
    return `${start.line + 1} ${mutatorName} -> ${replacement.replace(/\s+/g, " ")}: ${fate}`
  })
  expect(told).toMatchInlineSnapshot(`
    [
      "4 BlockStatement -> {}: noticed",
      "5 ConditionalExpression -> true: noticed",
      "5 ConditionalExpression -> false: noticed",
      "5 LogicalOperator -> value >= low || value <= high: noticed",
      "5 ConditionalExpression -> true: noticed",
      "5 EqualityOperator -> value > low: noticed",
      "5 EqualityOperator -> value < low: noticed",
      "5 ConditionalExpression -> true: survived",
      "5 EqualityOperator -> value < high: survived",
      "5 EqualityOperator -> value > high: noticed",
      "9 BlockStatement -> {}: noticed",
      "11 ConditionalExpression -> false: noticed",
      "11 EqualityOperator -> left >= 0: noticed",
      "11 EqualityOperator -> left <= 0: noticed",
      "11 UpdateOperator -> left++: noticed",
      "11 UpdateOperator -> count--: noticed",
      "16 BlockStatement -> {}: noticed",
      "17 ArrowFunction -> () => undefined: noticed",
      "21 BlockStatement -> {}: not reached",
      "22 ArithmeticOperator -> value / 2: not reached",
      "26 BlockStatement -> {}: not reached",
      "27 ArithmeticOperator -> value * 2: not reached",
      "33 BlockStatement -> {}: noticed",
      "34 ConditionalExpression -> true: noticed",
      "34 ConditionalExpression -> false: survived",
      "34 StringLiteral -> "": not reached",
      "36 ConditionalExpression -> true: noticed",
      "36 ConditionalExpression -> false: noticed",
      "36 EqualityOperator -> call() >= 0: survived",
      "36 EqualityOperator -> call() <= 0: noticed",
    ]
  `)
})
