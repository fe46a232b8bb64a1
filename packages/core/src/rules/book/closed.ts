import { ClosedError } from "../../errors.ts"

/** What is said to who asks a book that is closed, or waits for it. */
export function closed(): ClosedError {
  return new ClosedError("The rule book is closed")
}
