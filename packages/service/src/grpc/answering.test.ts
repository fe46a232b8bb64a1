import { EmptySchema } from "@bufbuild/protobuf/wkt"
import { expect, it } from "vitest"
import type { Call } from "../calls.ts"
import type { StatusError } from "../status-error.ts"
import { Answering, type AskedCall } from "./answering.ts"

const FAULT = new Error("a fault of the house")

it("a call whose fault cannot be told of is answered, and takes no room from those after it", () => {
  const answering = new Answering(1, {
    onFault(error) {
      throw error
    },
  })
  const call: Call = {
    path: "/sluice.test/Fails",
    input: EmptySchema,
    output: EmptySchema,
    handle() {
      throw FAULT
    },
    serialize: () => new Uint8Array(),
  }
  const messages: string[] = []
  const asked = {
    request: new Uint8Array(),
    fail: ({ message }: StatusError) => void messages.push(message),
  } as AskedCall
  for (let turn = 0; turn < 2; turn++) expect(() => answering.answer(call, asked)).toThrow(FAULT)
  expect(messages).toEqual(Array(2).fill("An error of the decision service; its log has it."))
})
