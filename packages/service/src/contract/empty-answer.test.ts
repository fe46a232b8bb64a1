import { create } from "@bufbuild/protobuf"
import { expect, it } from "vitest"
import { ShouldForwardRequestResponseSchema } from "../gen/sluice/v1/rate_limiter_pb.ts"
import { emptyAnswer } from "./empty-answer.ts"

it("an answer that says nothing has all that a message of its kind has, and shares nothing with another one", () => {
  const answer = emptyAnswer()
  expect({ ...answer }).toStrictEqual({ ...create(ShouldForwardRequestResponseSchema) })
  expect([answer.headers === emptyAnswer().headers, answer.shadowed === emptyAnswer().shadowed]).toEqual([
    false,
    false,
  ])
})
