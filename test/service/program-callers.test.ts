import { once } from "node:events"
import { connect as connectHttp2 } from "node:http2"
import { connect, type Socket } from "node:net"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { createMetrics } from "../../packages/service/src/program/metrics.ts"
import { until } from "../servers/until.ts"
import { type RunningHere, startHere } from "./in-process.ts"
import { post } from "./post.ts"
import { FORWARD, question } from "./questions.ts"
import { callRaw } from "./raw-call.ts"
import { rulesFile } from "./rules-file.ts"

// Refused callers cause one log line for each reason and peer. The metrics contain the total.

const TOKEN = "token-of-service-1"
const OTHER_TOKEN = "token-of-service-2"
const RULES = `
service_id: 1
rules:
  name: held
  field: user
  rate: { requests_per_unit: 1, unit: day }
  throttle: { kind: queue, max_wait_ms: 2147483647 }
`

const rules = rulesFile(RULES)
let program: RunningHere
const sockets: Socket[] = []
beforeAll(async () => {
  program = await startHere(
    ["--rules", rules, "--max-in-flight", "4", "--max-connections-per-peer", "3"],
    { SLUICE_DECIDE_TOKENS: JSON.stringify({ 1: TOKEN, 2: OTHER_TOKEN }) },
    createMetrics({}),
  )
  await program.said("The service is ready.")
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(() => program.stop())

async function connectFrom(from: string): Promise<Socket> {
  const [host, port] = program.grpc.split(":") as [string, string]
  const socket = connect({ port: Number(port), host, localAddress: from })
  socket.on("error", () => undefined)
  sockets.push(socket)
  await once(socket, "connect")
  return socket
}

/** Waits until the metrics contain this line. */
async function counted(line: string): Promise<void> {
  await until(`the metrics have ${line}`, async () => {
    const text = await (await fetch(`${program.operations}/metrics`)).text()
    return text.split("\n").includes(line)
  })
}

/** Returns the log lines with this message, without time and level. */
function told(message: string): object[] {
  const lines = program.lines().filter(({ msg }) => msg === message)
  return lines.map(({ time: _time, level: _level, msg: _msg, ...rest }) => rest)
}

describe("callers are counted and logged once a minute", () => {
  it("if they send a wrong token, in single calls and in batches", async () => {
    const ask = async (path: string, token: string, body: object): Promise<number> =>
      (await post(program, path, body, { authorization: `Bearer ${token}` })).status
    for (let i = 0; i < 5; i++) expect(await ask(FORWARD, OTHER_TOKEN, { serviceId: 1 })).toBe(403)
    await counted(`sluice_service_wrong_tokens_total{rpc_method="${FORWARD.slice(1)}"} 5`)
    const many = `${FORWARD}s`
    expect(await ask(many, "token-of-nobody-at-all", { requests: [{ serviceId: 1 }] })).toBe(403)
    // The token is valid for one request and wrong for two. Only the responses of these two requests contain an
    // error.
    const requests = [{ serviceId: 1 }, { serviceId: 2 }, { serviceId: 1 }]
    expect(await ask(many, OTHER_TOKEN, { requests })).toBe(200)
    await counted(`sluice_service_wrong_tokens_total{rpc_method="${many.slice(1)}"} 2`)
    expect(
      told("Calls are refused, because their token is missing or wrong. Give the caller a valid token."),
    ).toEqual([
      { path: FORWARD, peer: "127.0.0.1", count: 1 },
      { path: many, peer: "127.0.0.1", count: 1 },
    ])
    expect(program.output()).not.toContain(OTHER_TOKEN)
  })

  it("if they are gateways with a wrong configuration", async () => {
    const check = (headers: Record<string, string>): Promise<number> =>
      fetch(`${program.http}/check/1`, { headers }).then(({ status }) => status)
    const headers = { "x-original-method": "GET", "x-forwarded-for": "192.0.2.7" }
    for (let i = 0; i < 3; i++) expect(await check(headers)).toBe(400)
    await counted(
      'rpc_server_call_duration_count{rpc_system_name="http",rpc_method="check",rpc_response_status_code="invalid_argument"} 3',
    )
    const message =
      "Checks of a gateway fail, so it does not forward requests. Correct its configuration; reason says what is wrong."
    const reason = "X-Original-URI is missing; send it together with X-Original-Method."
    expect(told(message)).toEqual([{ reason, peer: "127.0.0.1", count: 1 }])
  })

  it("if they open too many connections", async () => {
    const attacking = await Promise.all(Array.from({ length: 8 }, () => connectFrom("127.0.0.3")))
    for (const socket of attacking) socket.resume()
    await until("the others are closed", () => attacking.filter(({ closed }) => closed).length === 5)
    await counted('sluice_service_refused_connections_total{sluice_service_bound="peer"} 5')
    const message =
      "Connections are refused, because this peer has reached --max-connections-per-peer. Raise this limit for a gateway or proxy."
    expect(told(message)).toEqual([{ peer: "127.0.0.3", count: 1 }])
  })

  it("if they are refused because the service is overloaded", async () => {
    const socket = await connectFrom("127.0.0.4")
    const session = connectHttp2(`http://${program.grpc}`, { createConnection: () => socket })
    session.on("error", () => undefined)
    const ask = () => callRaw(session, FORWARD, question("a", 1), { authorization: `Bearer ${TOKEN}` })
    expect(await ask()).toMatchObject({ status: 0 })
    const answers: number[] = []
    for (let i = 0; i < 10; i++) void ask().then(({ status }) => answers.push(status))
    await until("the rest is refused", () => answers.length === 7)
    expect(new Set(answers)).toEqual(new Set([14]))
    await counted('sluice_service_overloads_total{sluice_service_bound="held"} 7')
    expect(
      told(
        "Calls are refused, because queuing rules hold too many calls of this caller or service. Raise --max-in-flight.",
      ),
    ).toEqual([{ peer: "127.0.0.4", count: 1 }])
    session.destroy()
  })
})
