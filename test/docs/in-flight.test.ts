import { once } from "node:events"
import { request } from "node:http"
import { connect, type Socket } from "node:net"
import { expect, it } from "vitest"
import { until } from "../servers/until.ts"
import type { Block } from "./blocks.ts"
import { ROOT } from "./documents.ts"
import { makeFolder, startApp } from "./programs.ts"
import { blocksTestedBy } from "./shown.ts"

const [upgrade] = blocksTestedBy("test/docs/in-flight.test.ts", "docs/rules/in-flight.md", 1) as [Block]

/** The block, with the servers that it assumes. The examples depend on ws. */
const program = `import { createServer } from "node:http"
import { WebSocketServer } from "${ROOT}examples/node_modules/ws/wrapper.mjs"
const server = createServer().listen(process.env.PORT)
const sockets = new WebSocketServer({ noServer: true })
${upgrade.text}`
const HEADERS = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": Buffer.alloc(16).toString("base64"),
}

/** Opens a WebSocket. Returns its connection, or the status of a server that refuses. */
function open(url: string): Promise<Socket | number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers: HEADERS, agent: false })
    sent.on("upgrade", (_response, socket) => resolve(socket.on("error", () => undefined) as Socket))
    sent.on("response", (response) => resolve(response.resume().statusCode ?? 0))
    sent.on("error", reject).end()
  })
}

it("the guide's code for WebSockets admits two sockets at a time for an address, until one of them closes", async () => {
  const { url } = await startApp(makeFolder({ "app.js": program }))
  const opened: Socket[] = []
  /** Opens a socket as soon as a permit is free. */
  const openLater = () =>
    until("a permit is free", async () => {
      const socket = await open(url)
      if (typeof socket === "number") return false
      opened.push(socket)
      return true
    })
  await openLater()
  await openLater()
  expect(await open(url)).toBe(429)
  opened.shift()?.destroy()
  await openLater()
  expect(await open(url)).toBe(429)
  for (const socket of opened.splice(0)) socket.destroy()

  // A client that hangs up during the decision leaves no permit behind.
  const gone = connect(Number(new URL(url).port), "127.0.0.1")
  gone.write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
  gone.resetAndDestroy()
  await once(gone, "close")
  await openLater()
  await openLater()
  expect(await open(url)).toBe(429)
  for (const socket of opened) socket.destroy()
})
