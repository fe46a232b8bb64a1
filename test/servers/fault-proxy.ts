import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/**
 * The fault of a call, which replaces a normal response. For "throttle", "deny", "fail", "reset" and "hang", the
 * server does not receive the call. For all other faults, the server executes the call, but its response is lost. The
 * connection breaks ("lose"), no response arrives ("silence"), or half of it arrives ("cut").
 */
export type Fault =
  | "throttle"
  | "deny"
  | "fail"
  | "reset"
  | "hang"
  | "lose"
  | "silence"
  | "cut"
  | { readonly delayMs: number }
  | Answer

/** An error response of DynamoDB, of any type. */
export interface Answer {
  readonly status: number
  readonly type: string
  readonly message: string
}

/** A proxy in front of a DynamoDB server, controlled by a test. */
export interface FaultProxy {
  readonly endpoint: string
  /** Action of each received attempt, such as "GetItem". */
  readonly calls: string[]
  /** Input of each received attempt. */
  readonly inputs: unknown[]
  /** Number of attempts that never receive a response. */
  unanswered: number
  /** Returns the fault for later calls of an action. If it returns undefined, the call is forwarded. */
  fault: ((action: string) => Fault | undefined) | undefined
  /** A function that is called and awaited before each call is handled. */
  before: ((action: string) => Promise<void>) | undefined
  stop(): Promise<void>
}

/** Responses of DynamoDB, in its wire format. */
const ANSWERS: Readonly<Record<"throttle" | "deny" | "fail", Answer>> = {
  throttle: {
    status: 400,
    type: "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    message: "Too many reads",
  },
  deny: {
    status: 400,
    type: "com.amazon.coral.service#AccessDeniedException",
    message: "User: arn:aws:iam::1:user/a is not authorized to perform it",
  },
  fail: {
    status: 500,
    type: "com.amazonaws.dynamodb.v20120810#InternalServerError",
    message: "The service failed",
  },
}

/** Starts a proxy in front of a server with the DynamoDB protocol, on a free port of 127.0.0.1. */
export async function startFaultProxy(target: {
  readonly host: string
  readonly port: number
}): Promise<FaultProxy> {
  const pass = (from: IncomingMessage, body: Buffer): Promise<{ answer: IncomingMessage; body: Buffer }> =>
    new Promise((resolve, reject) => {
      const { method, url, headers } = from
      const passed = request({ ...target, method, path: url, headers }, (answer) => {
        read(answer).then((text) => resolve({ answer, body: text }), reject)
      })
      passed.once("error", reject).end(body)
    })
  const serve = async (from: IncomingMessage, to: ServerResponse): Promise<void> => {
    const body = await read(from)
    const action = String(from.headers["x-amz-target"]).replace(/^.*\./, "")
    proxy.calls.push(action)
    proxy.inputs.push(JSON.parse(body.toString()))
    await proxy.before?.(action)
    const fault = proxy.fault?.(action)
    const answer = answerOf(fault)
    if (answer !== undefined) {
      const { status, type, message } = answer
      to.writeHead(status, { "content-type": "application/x-amz-json-1.0" })
      to.end(JSON.stringify({ __type: type, message }))
      return
    }
    if (fault === "hang") {
      proxy.unanswered += 1
      return
    }
    if (fault === "reset") {
      from.socket.resetAndDestroy()
      return
    }
    if (typeof fault === "object" && "delayMs" in fault) {
      await new Promise((resolve) => setTimeout(resolve, fault.delayMs))
    }
    const passed = await pass(from, body)
    if (fault === "silence") {
      proxy.unanswered += 1
      return
    }
    if (fault === "lose") {
      from.socket.resetAndDestroy()
      return
    }
    to.writeHead(passed.answer.statusCode ?? 502, passed.answer.headers)
    if (fault !== "cut") {
      to.end(passed.body)
      return
    }
    to.write(passed.body.subarray(0, Math.floor(passed.body.length / 2)), () => from.socket.destroy())
  }
  const server = createServer((from, to) => void serve(from, to).catch(() => from.socket.destroy()))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const proxy: FaultProxy = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: [],
    inputs: [],
    unanswered: 0,
    fault: undefined,
    before: undefined,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return proxy
}

/** Returns the response to send without contacting the server. */
function answerOf(fault: Fault | undefined): Answer | undefined {
  if (fault === "throttle" || fault === "deny" || fault === "fail") return ANSWERS[fault]
  return typeof fault === "object" && "type" in fault ? fault : undefined
}

async function read(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
