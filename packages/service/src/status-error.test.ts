import { expect, it } from "vitest"
import { Code, StatusError, shortened } from "./status-error.ts"

it("shortened cuts long strings and replaces lone surrogates, so that the error fits into header fields", () => {
  const half = "\ud83d"
  const { message, violations } = shortened(
    new StatusError(Code.INVALID_ARGUMENT, `a ${half} b`, [{ field: half, description: "x".repeat(600) }]),
  )
  expect(message).toBe("a \ufffd b")
  expect(violations).toEqual([{ field: "\ufffd", description: `${"x".repeat(500)}…` }])
  expect(shortened(new StatusError(Code.ABORTED, `${"x".repeat(499)}😀`)).message).toBe(
    `${"x".repeat(499)}\ufffd…`,
  )
})
