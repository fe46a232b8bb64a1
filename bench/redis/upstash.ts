import { createHash } from "node:crypto"
import { Ratelimit } from "@upstash/ratelimit"
import type { Redis } from "ioredis"
import type { ContenderKind } from "../load/contender.ts"
import { connect } from "./connect.ts"

/**
 * The sliding window of @upstash/ratelimit. Its client calls a service over HTTP. Here its scripts run on a plain
 * Redis, without their first line, which sets a flag that only that service supports. The cache of blocked clients is
 * on, which is the default.
 */
export const upstash: ContenderKind = {
  sends: ["evalsha", "eval"],
  async create({ port, limits: [first] }) {
    if (first === undefined) throw new Error("There is no limit")
    const limiter = new Ratelimit({
      redis: overRedis(await connect(port)),
      limiter: Ratelimit.slidingWindow(first.limit, `${first.windowMs} ms`),
      enableTelemetry: false,
    })
    return {
      count: async (key) => (await limiter.limit(key)).success,
      judge: (isGranted) => (isGranted === true ? "granted" : "refused"),
      judgeError: () => "failed",
    }
  },
}

type Client = ConstructorParameters<typeof Ratelimit>[0]["redis"]

/** Returns a client with the two methods that the limiters call. */
function overRedis(client: Redis): Client {
  const sent = new Map<string, string>()
  const calls = {
    async evalsha(hash: string, keys: string[], args: unknown[]) {
      const ours = sent.get(hash)
      // The error from a server that has not loaded the script. The limiter then sends the script with `eval`.
      if (ours === undefined) throw new Error("NOSCRIPT")
      return client.evalsha(ours, keys.length, ...keys, ...args.map(String))
    },
    async eval(script: string, keys: string[], args: unknown[]) {
      const plain = script.replace(/^#!lua.*\n/, "")
      sent.set(sha1(script), sha1(plain))
      return client.eval(plain, keys.length, ...keys, ...args.map(String))
    },
  }
  return calls as unknown as Client
}

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex")
}
