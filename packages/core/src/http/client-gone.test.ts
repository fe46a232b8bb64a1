import { EventEmitter, once } from "node:events"
import { createServer, type Server, type ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { afterEach, describe, expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import { type ClosingResponse, hasGone, onGone } from "./client-gone.ts"
import { createGuard } from "./guard/create-guard.ts"
import type { Outcome } from "./guard/mount-outcome.ts"

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await nextTurn()
}

/** Starts a server whose responses the test sends, and a client that pipelines `count` requests on one connection. */
async function pipelined(count: number, onRequest?: (response: ServerResponse) => void) {
  const responses: ServerResponse[] = []
  const server: Server = createServer((_request, response) => {
    responses.push(response)
    onRequest?.(response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closing.push(() => new Promise((resolve) => server.close(resolve)))
  const client: Socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
  closing.push(() => client.destroy())
  client.on("error", () => undefined).resume()
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(count))
  await until(() => responses.length === count)
  const [connection] = responses.map(({ req }) => req.socket)
  const hangUp = async () => {
    client.destroy()
    await once(connection as Socket, "close")
    await nextTurn()
  }
  return { responses, connection: connection as Socket, hangUp }
}

describe("the client of a response", () => {
  it("is reported as gone for every response on its connection when it hangs up", async () => {
    const { responses, hangUp } = await pipelined(3)
    const gone: number[] = []
    responses.forEach((response, i) => {
      onGone(response, () => gone.push(i))
    })
    expect(responses.map(hasGone)).toEqual([false, false, false])
    await hangUp()
    expect([...new Set(gone)].sort()).toEqual([0, 1, 2])
    expect(responses.map(hasGone)).toEqual([true, true, true])
  })

  it("is not reported as gone to a listener that was removed", async () => {
    const { responses, hangUp } = await pipelined(3)
    const gone: number[] = []
    const stops = responses.map((response, i) => onGone(response, () => gone.push(i)))
    stops[0]?.()
    stops[1]?.()
    await hangUp()
    expect([...new Set(gone)]).toEqual([2])
  })

  it("is watched by one listener per connection, however many requests are queued on the connection", async () => {
    const { responses, connection } = await pipelined(30)
    const listening = () => [connection, ...responses].map((each) => each.listenerCount("close"))
    const [onConnection = 0, ...onResponses] = listening()
    for (let round = 0; round < 2; round++) {
      const stops = responses.map((response) => onGone(response, () => undefined))
      for (const stop of stops) stop()
    }
    expect(listening()).toEqual([onConnection + 1, ...onResponses])
  })

  it("is not reported as gone for a queued response when the response before it was sent", async () => {
    const { responses } = await pipelined(2)
    responses[0]?.end()
    await once(responses[0] as ServerResponse, "close")
    expect(responses.map(hasGone)).toEqual([true, false])
  })

  it.each<[string, object]>([
    ["no request", {}],
    ["no socket", { req: {} }],
    ["a socket that is null", { req: { socket: null } }],
    ["a socket that is not an event emitter", { req: { socket: { remoteAddress: "192.0.2.1" } } }],
  ])("is reported as gone when the response closes, even if the response has %s", (_name, more) => {
    const response = Object.assign(new EventEmitter(), more) as EventEmitter & ClosingResponse
    expect(hasGone(response)).toBe(false)
    let gone = 0
    const stop = onGone(response, () => gone++)
    response.emit("close")
    expect(gone).toBe(1)
    stop()
    expect(hasGone(Object.assign(response, { closed: true }))).toBe(true)
    expect(hasGone(Object.assign(response, { closed: false, destroyed: true }))).toBe(true)
  })
})

it("pipelined requests that a rule delays leave the queue when their client hangs up", async () => {
  const clock = manualClock()
  const guard = createGuard<object>({
    limit: 1,
    window: "1 second",
    algorithm: "fixed-window",
    throttle: { kind: "queue", maxWaiting: 2 },
    clock,
  })
  closing.push(() => guard.close())
  await nextTurn()
  const facts = { remoteAddress: "127.0.0.1" }
  const outcomes: (Outcome | Promise<Outcome | undefined> | undefined)[] = []
  const { hangUp } = await pipelined(3, (response) => {
    outcomes.push(guard.check(facts, response.req, response))
  })
  expect(outcomes.map((outcome) => outcome instanceof Promise)).toEqual([false, true, true])
  await hangUp()
  expect(await Promise.all(outcomes.slice(1))).toEqual([undefined, undefined])
  // Both requests have left the queue, so two other requests fit.
  const next = [guard.check(facts, {}), guard.check(facts, {})]
  clock.advance(1_000)
  expect((await next[0])?.rejection).toBeUndefined()
})

it("onGone releases the request when its listener is removed, even if the connection stays open", async () => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  const response = Object.assign(new EventEmitter(), { req: { socket: new EventEmitter() } })
  const hold = (): WeakRef<object> => {
    const request = { large: true }
    onGone(response, () => void request.large)()
    return new WeakRef(request)
  }
  const kept = hold()
  await nextTurn()
  collect()
  expect(kept.deref()).toBeUndefined()
})
