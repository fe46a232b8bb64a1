import { create } from "@bufbuild/protobuf"
import { expect, it } from "vitest"
import { ShouldForwardRequestResponseSchema } from "../gen/sluice/v1/rate_limiter_pb.ts"
import { emptyAnswer } from "./empty-answer.ts"

it("an empty response contains every field of its message and shares no object with another response", () => {
  const answer = emptyAnswer()
  expect({ ...answer }).toStrictEqual({ ...create(ShouldForwardRequestResponseSchema) })
  expect([answer.headers === emptyAnswer().headers, answer.shadowed === emptyAnswer().shadowed]).toEqual([
    false,
    false,
  ])
})
