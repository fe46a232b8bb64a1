import { InvalidOptionError } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import { expect, it } from "vitest"
import { blocksTestedBy, expectShown } from "./shown.ts"

const shownIn = (document: string): string =>
  blocksTestedBy("test/docs/messages.test.ts", document, 1)[0]?.text ?? ""

it("docs/errors/sluice_invalid_option.md shows the actual message for invalid options", () => {
  const options = { windw: "1 minute", limit: 0 } as never
  let thrown: unknown
  try {
    rateLimit(options)
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(InvalidOptionError)
  expectShown(shownIn("docs/errors/sluice_invalid_option.md"), String(thrown))
})
