import { once } from "node:events"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { pipeline, Readable } from "node:stream"
import { text } from "node:stream/consumers"
import { ReplyError, RespConnection } from "./resp.ts"

export const TOKEN = "test-token"

/** What happens to a request: "lost" runs the command and closes the connection, as a lost reply does. */
export type Fault = "lost" | "silent" | "half" | "endless" | Pick<Answer, "status" | "body" | "headers">

interface Answer {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * An HTTP server in front of a Redis server, which speaks the REST form of Upstash: POST with a JSON array. Responds with
 * `{"result": …}`, or with 400 and `{"error": …}` if Redis does, or with 401 for another token.
 */
export interface RedisFront {
  readonly url: string
  /** The commands that have arrived. */
  readonly commands: (readonly string[])[]
  /** What happens to the next requests instead of a response. Undefined responds. */
  fault: Fault | undefined
  stop(): Promise<void>
}

/** Starts a front of the Redis server on this port of 127.0.0.1. */
export async function startFront(redisPort: number, port = 0): Promise<RedisFront> {
  const redis = new RespConnection("127.0.0.1", redisPort)
  const server = createServer(async (request, response) => {
    const { authorization } = request.headers
    const body = await text(request)
    if (authorization !== `Bearer ${TOKEN}`) return answer(response, 401, { error: "Unauthorized" })
    const command = JSON.parse(body) as string[]
    front.commands.push(command)
    const { fault } = front
    if (typeof fault === "object") {
      response.writeHead(fault.status, fault.headers ?? {}).end(fault.body)
      return
    }
    if (fault === "silent") return
    if (fault === "endless") return endless(response)
    const replied = await redis.command(...command).then(
      (result) => ({ status: 200, reply: { result } }),
      (error: Error) => ({
        status: error instanceof ReplyError ? 400 : 500,
        reply: { error: error.message },
      }),
    )
    if (fault === "lost") response.destroy()
    else answer(response, replied.status, replied.reply, fault === "half")
  })
  await once(server.listen(port, "127.0.0.1"), "listening")
  const front: RedisFront = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    commands: [],
    fault: undefined,
    async stop() {
      redis.close()
      server.close()
      server.closeAllConnections()
    },
  }
  return front
}

function answer(response: ServerResponse, status: number, reply: object, isHalf = false): void {
  const body = JSON.stringify(reply)
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": body.length })
  if (!isHalf) response.end(body)
  else response.write(body.slice(0, -2), () => response.destroy())
}

/** Sends the letter "a" until the client closes the connection. */
function endless(response: ServerResponse): void {
  const piece = "a".repeat(2 ** 16)
  const letters = Readable.from(
    (function* () {
      for (;;) yield piece
    })(),
  )
  pipeline(letters, response, () => {})
}
