import { expect, it } from "vitest"
import { decisionOn } from "./mount-decision.ts"

it.each([[undefined], [null], [{}]])(
  "decisionOn returns undefined for %s, which no mount has decided",
  (request) => {
    expect(decisionOn(request as never)).toBeUndefined()
  },
)
