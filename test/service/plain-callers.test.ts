import { create, toBinary } from "@bufbuild/protobuf"
import { status } from "@grpc/grpc-js"
import { rulesInMemory, tokens } from "@sluice/service"
import { describe, expect, it } from "vitest"
import { RegisterServiceRequestSchema } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { bytesOf, FORWARD, WAYS } from "./questions.ts"
import { answerTo, beginCall, framed, openRaw } from "./raw-call.ts"
import { startService, WAITING } from "./started.ts"

describe.each(WAYS)("a caller whose calls are read by $way", ({ headers, plainCalls }) => {
  it("is identified by its token, and by its address in the audit log", async () => {
    const peers: string[] = []
    const started = await startService(rulesInMemory(), {
      plainCalls,
      tokens: tokens({ "1": "s3cret" }),
      audit: { changed: ({ peer }) => void peers.push(peer), notInForce() {} },
    })
    const session = openRaw(started.grpc)
    const message = create(RegisterServiceRequestSchema, {
      serviceId: 1,
      rule: { name: "one", field: "user", rate: { requestsPerUnit: 1, unit: "day" } },
    })
    const register = async (authorization: Readonly<Record<string, string>>) => {
      const path = "/sluice.v1.RateLimiter/RegisterService"
      const stream = beginCall(session, path, { ...headers, ...authorization })
      const answer = answerTo(stream)
      stream.end(framed(toBinary(RegisterServiceRequestSchema, message)))
      return (await answer).status
    }
    expect(await register({})).toBe(status.UNAUTHENTICATED)
    expect(await register({ authorization: "Bearer wrong" })).toBe(status.PERMISSION_DENIED)
    expect(peers).toEqual([])
    expect(await register({ authorization: "bearer s3cret" })).toBe(status.OK)
    expect(peers).toEqual([`127.0.0.1:${session.socket.localPort}`])
    session.destroy()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  it("can receive an error with text from its request that no header field can hold", async () => {
    const started = await startService(rulesInMemory(), { plainCalls })
    const session = openRaw(started.grpc)
    const message = create(RegisterServiceRequestSchema, {
      serviceId: 1,
      rule: { name: "one", field: "user", rate: { requestsPerUnit: 1, unit: "jähr\n%" } },
    })
    const stream = beginCall(session, "/sluice.v1.RateLimiter/RegisterService", headers)
    const answer = answerTo(stream)
    stream.end(framed(toBinary(RegisterServiceRequestSchema, message)))
    const { status: code, message: told } = await answer
    expect(code).toBe(status.INVALID_ARGUMENT)
    expect(told).toMatch(/^[\x20-\x7e]+$/)
    expect(decodeURIComponent(told as string)).toMatch(/jähr.*%/s)
    session.destroy()
    await started.stop()
  })

  it("receives no details about a fault of the service", async () => {
    const fault = new Error("a secret of the house")
    const started = await startService(WAITING, {
      plainCalls,
      onUnknownService() {
        throw fault
      },
    })
    const session = openRaw(started.grpc)
    const stream = beginCall(session, FORWARD, headers)
    const answer = answerTo(stream)
    stream.end(framed(bytesOf({ service: "nobody" })))
    const { status: code, message } = await answer
    expect(code).toBe(status.INTERNAL)
    expect(decodeURIComponent(message as string)).toBe("The decision service failed; see its log.")
    expect(started.faults).toEqual([fault])
    session.destroy()
    await started.stop()
  })
})
