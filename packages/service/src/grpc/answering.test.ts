import { EmptySchema } from "@bufbuild/protobuf/wkt"
import { describe, expect, it } from "vitest"
import { CallPlaces, InFlight } from "../bounds/in-flight.ts"
import { newPeer, Peers } from "../bounds/peers.ts"
import type { Call } from "../calls.ts"
import type { StatusError } from "../status-error.ts"
import { Answering, type AskedCall } from "./answering.ts"

const FAULT = new Error("a fault of the house")
const TOLD = "The decision service failed; see its log."

function throwFault(): never {
  throw FAULT
}

/** Returns a function that makes one call. Also returns the error messages of all calls and the reported faults. */
function fail(answerBytes: Call["answerBytes"], onFault: (error: unknown) => void = () => undefined) {
  const messages: string[] = []
  const faults: unknown[] = []
  const answering = new Answering({
    onFault(error) {
      faults.push(error)
      onFault(error)
    },
    onWrongToken: () => undefined,
  })
  const call: Call = {
    path: "/sluice.test/Fails",
    output: EmptySchema,
    authorize() {},
    answerBytes,
    answerJson: () => "{}",
  }
  const inFlight = new InFlight(1, 1_000, new Peers(), {})
  const asked = {
    places: new CallPlaces(inFlight, newPeer("127.0.0.1")),
    request: new Uint8Array(),
    fail: ({ message }: StatusError) => void messages.push(message),
  } as AskedCall
  return { messages, faults, ask: () => answering.answer(call, asked) }
}

describe("a call that fails", () => {
  it("gets a response and frees its place, even if the fault cannot be reported", () => {
    const { messages, ask } = fail(throwFault, throwFault)
    for (let turn = 0; turn < 2; turn++) expect(ask).toThrow(FAULT)
    expect(messages).toEqual([TOLD, TOLD])
  })

  it.each([
    ["synchronously", throwFault],
    ["asynchronously", async () => throwFault()],
  ])("gets a response and frees its place when it fails %s", async (_when, answerBytes) => {
    const { messages, faults, ask } = fail(answerBytes)
    for (let turn = 1; turn <= 2; turn++) {
      ask()
      await expect.poll(() => messages).toHaveLength(turn)
    }
    expect(messages).toEqual([TOLD, TOLD])
    expect(faults).toEqual([FAULT, FAULT])
  })
})
