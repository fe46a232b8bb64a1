import { create, toBinary } from "@bufbuild/protobuf"
import { status } from "@grpc/grpc-js"
import { rulesInMemory, tokens } from "@sluice/service"
import { describe, expect, it } from "vitest"
import { RegisterServiceRequestSchema } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { bytesOf, FORWARD, WAYS } from "./questions.ts"
import { callOnce, callRaw, openRaw } from "./raw-call.ts"
import { openService, startService, WAITING } from "./started.ts"

const REGISTER = "/sluice.v1.RateLimiter/RegisterService"

/** Returns a message that registers a rule with this time unit. */
function registration(unit: string): Uint8Array {
  const rule = { name: "one", field: "user", rate: { requestsPerUnit: 1, unit } }
  return toBinary(RegisterServiceRequestSchema, create(RegisterServiceRequestSchema, { serviceId: 1, rule }))
}

describe.each(WAYS)("a caller whose calls are read by $way", ({ headers, plainCalls }) => {
  it("is identified by its token, and by its address in the audit log", async () => {
    const peers: string[] = []
    const started = await openService(rulesInMemory(), {
      plainCalls,
      tokens: tokens({ "1": "s3cret" }),
      audit: { changed: ({ peer }) => void peers.push(peer), notInForce() {} },
    })
    const session = openRaw(started.grpc)
    const register = async (authorization: Readonly<Record<string, string>>) =>
      (await callRaw(session, REGISTER, registration("day"), { ...headers, ...authorization })).status
    expect(await register({})).toBe(status.UNAUTHENTICATED)
    expect(await register({ authorization: "Bearer wrong" })).toBe(status.PERMISSION_DENIED)
    expect(peers).toEqual([])
    expect(await register({ authorization: "bearer s3cret" })).toBe(status.OK)
    expect(peers).toEqual([`127.0.0.1:${session.socket.localPort}`])
    session.destroy()
  })

  it("can receive an error that repeats request text which no header field can contain", async () => {
    const started = await openService(rulesInMemory(), { plainCalls })
    const { status: code, message: told } = await callOnce(
      started.grpc,
      REGISTER,
      registration("jähr\n%"),
      headers,
    )
    expect(code).toBe(status.INVALID_ARGUMENT)
    expect(told).toMatch(/^[\x20-\x7e]+$/)
    expect(decodeURIComponent(told as string)).toMatch(/jähr.*%/s)
  })

  it("receives no details about a fault of the service", async () => {
    const fault = new Error("a secret of the house")
    const started = await startService(WAITING, {
      plainCalls,
      onUnknownService() {
        throw fault
      },
    })
    const asked = bytesOf({ service: "nobody" })
    const { status: code, message } = await callOnce(started.grpc, FORWARD, asked, headers)
    expect(code).toBe(status.INTERNAL)
    expect(decodeURIComponent(message as string)).toBe("The decision service failed; see its log.")
    expect(started.faults).toEqual([fault])
    await started.stop()
  })
})
