import { type Empty, EmptySchema } from "@bufbuild/protobuf/wkt"
import { describe, expect, it } from "vitest"
import type { Call } from "../calls.ts"
import { Code, StatusError } from "../status-error.ts"
import { Answering, type AskedCall } from "./answering.ts"

const FAULT = new Error("a fault of the house")
const TOLD = "An error of the decision service; its log has it."

function throwFault(): never {
  throw FAULT
}

/** Asks a call as often as wanted; yields the messages that it failed with, and the faults that were told of. */
function fail(
  { handle, serialize = () => new Uint8Array() }: Pick<Call, "handle"> & Partial<Pick<Call, "serialize">>,
  onFault: (error: unknown) => void = () => undefined,
) {
  const messages: string[] = []
  const faults: unknown[] = []
  const answering = new Answering(1, {
    onFault(error) {
      faults.push(error)
      onFault(error)
    },
  })
  const call: Call = {
    path: "/sluice.test/Fails",
    input: EmptySchema,
    output: EmptySchema,
    handle,
    serialize,
  }
  const asked = {
    request: new Uint8Array(),
    fail: ({ message }: StatusError) => void messages.push(message),
  } as AskedCall
  return { messages, faults, ask: () => answering.answer(call, asked) }
}

describe("a call that fails", () => {
  it("is answered, and takes no room from those after it, where its fault cannot be told of", () => {
    const { messages, ask } = fail({ handle: throwFault }, throwFault)
    for (let turn = 0; turn < 2; turn++) expect(ask).toThrow(FAULT)
    expect(messages).toEqual([TOLD, TOLD])
  })

  it.each([
    ["at once", () => ({}) as Empty],
    ["later", async () => ({}) as Empty],
  ])("does so where its answer cannot be written, be it there %s", async (_when, handle) => {
    const { messages, faults, ask } = fail({ handle, serialize: throwFault })
    for (let turn = 1; turn <= 2; turn++) {
      ask()
      await expect.poll(() => messages).toHaveLength(turn)
    }
    expect(messages).toEqual([TOLD, TOLD])
    expect(faults).toEqual([FAULT, FAULT])
  })

  it("says no more than header fields hold", () => {
    const error = new StatusError(Code.ABORTED, "x".repeat(600))
    const { messages, ask } = fail({
      handle() {
        throw error
      },
    })
    ask()
    expect(messages).toEqual([`${"x".repeat(500)}…`])
  })
})
