import { expect, it } from "vitest"
import { ServerCall } from "./call.ts"

it("a call has certainly not been applied until it is sent", () => {
  const call = new ServerCall(50)
  expect(call.outcome).toBe("not-applied")
  expect(call.send()).toBe(true)
  expect(call.outcome).toBe("unknown")
})

it("a call is not sent after its caller gave up before it was sent", () => {
  const call = new ServerCall(50)
  call.giveUp()
  expect(call.send()).toBe(false)
  expect(call.outcome).toBe("not-applied")
})

it("a call has an unknown outcome if its caller gave up after it was sent", () => {
  const call = new ServerCall(50)
  call.send()
  call.giveUp()
  expect(call.outcome).toBe("unknown")
})
