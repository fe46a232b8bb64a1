import { expect, it } from "vitest"
import { ServerCall } from "./call.ts"

it("has certainly changed nothing until it is sent", () => {
  const call = new ServerCall(50)
  expect(call.outcome).toBe("not-applied")
  expect(call.send()).toBe(true)
  expect(call.outcome).toBe("unknown")
})

it("is not sent any more when its caller was told that it was not", () => {
  const call = new ServerCall(50)
  call.giveUp()
  expect(call.send()).toBe(false)
  expect(call.outcome).toBe("not-applied")
})

it("may be sent on when its caller gave up: a script that the server has forgotten is sent whole", () => {
  const call = new ServerCall(50)
  call.send()
  call.giveUp()
  expect(call.outcome).toBe("unknown")
})
