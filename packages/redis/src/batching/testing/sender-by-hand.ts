import { setImmediate as nextTurn } from "node:timers/promises"
import { StoreUnavailableError } from "@sluice/core"
import type { Policy } from "@sluice/core/stores"
import { vi } from "vitest"
import type { RedisCommands } from "../../commands.ts"
import { Node } from "../../node/node.ts"
import type { RedisRequest } from "../../scripts/script-input.ts"
import type { BatchPolicy } from "../batch-policy.ts"
import { type BatchListener, BatchSender } from "../batch-sender.ts"

const POLICY: Policy = {
  name: "login",
  counter: "counter0",
  algorithm: "fixed-window",
  limit: 10,
  windowMs: 60_000,
  align: "first-hit",
}
const SERVER_MS = 1_700_000_000_000

/** A call to Redis that waits for a reply from the test. */
interface Call {
  /** Names of the requests that the call decides. */
  readonly names: readonly string[]
  /** Number of requests for the first key that the call decides. */
  readonly times: number
  /** The call's deadline in milliseconds from the start. After it, Redis must count none of the requests. */
  readonly untilMs: number
  readonly reply: (reply: unknown) => void
  /** Rejects the call with an error of Redis or of the client. */
  readonly fail: (message: string) => void
}

/** Creates a batch sender. The test itself replies to each call. Timers and the monotonic clock must be fake. */
export function senderByHand(policy?: BatchPolicy) {
  const startMs = performance.now()
  const passedMs = () => Math.floor(performance.now() - startMs)
  const calls: Call[] = []
  /** Calls that ask for the server's time. */
  const timeCalls: Call[] = []
  const redis = { isReady: true, reconnects: 0 }
  const sent = (to: Call[], names: readonly string[], untilMs: number, times: number) =>
    new Promise<unknown>((resolve, reject) => {
      to.push({ names, times, untilMs, reply: resolve, fail: (message) => reject(new Error(message)) })
    })
  const commands: RedisCommands = {
    isCluster: false,
    isReady: () => redis.isReady,
    isOpen: () => true,
    evalsha: (_sha, keys, args) => {
      // The argument is a JSON list: the times, the policies, the number of entries, and the first entry.
      const numbers = args[0]?.split(",") ?? []
      return sent(calls, keys, Number(numbers[1]) - SERVER_MS, Number(numbers[9]))
    },
    eval: () => sent(timeCalls, [], 0, 0),
    del: () => Promise.reject(new Error("nothing is deleted")),
    nodeOf: () => "",
    reconnect: () => void redis.reconnects++,
  }
  const newNode = () => new Node(commands, { clock: undefined, isWide: false }, "sl2:{a}")
  let node = newNode()
  const listened = { refused: [] as unknown[], lost: [] as string[], late: [] as string[][] }
  const nameOf = ({ keys }: RedisRequest) => keys[0] as string
  const listener: BatchListener = {
    answered: (asked, { granted }, { sentAtMs }) => {
      if (!granted) listened.refused.push([nameOf(asked), granted, sentAtMs - startMs])
    },
    lost: (asked) => listened.lost.push(nameOf(asked)),
    grantedLate: (late) => listened.late.push(late.map(({ asked }) => nameOf(asked))),
  }
  const sender = new BatchSender(() => node, listener, policy)
  /** The outcome of each request. */
  const told: Record<string, string> = {}
  /** The kind of each failed request's error. */
  const kinds: Record<string, string> = {}
  const ask = async (name: string, withinMs: number) => {
    const keys = name.split("+")
    const checks = keys.map((partition) => ({ policy: POLICY, partition, cost: 1, shadow: false }))
    return sender.take({ checks, keys }, withinMs)
  }
  /** Takes the units of a request with one check, or with two checks if the name is such as "a+b". */
  const take = (name: string, withinMs = 50) => {
    ask(name, withinMs).then(
      (answer) => {
        told[name] = answer?.granted === true ? "granted" : "refused"
      },
      (error: Error) => {
        told[name] = error.message
        if (error instanceof StoreUnavailableError) kinds[name] = error.kind
      },
    )
  }
  return {
    sender,
    redis,
    calls,
    timeCalls,
    listened,
    told,
    kinds,
    take,
    /** Takes the units of one request for each of `count` callers, all at the same time. */
    takeMany: (count: number) => {
      for (let i = 0; i < count; i++) take(`one of ${count}: ${i}`)
    },
    /** Takes the units of each request in a separate callback. */
    takeNow: async (...names: readonly string[]) => {
      for (const name of names) {
        take(name)
        await nextTurn()
      }
    },
    /** Returns the names of the requests in each call so far. */
    names: () => calls.map((call) => call.names),
    /** Grants all requests of a call except the `refused` ones. */
    answer: async (call: Call | undefined, refused: readonly string[] = []) => {
      const names = call?.names ?? []
      const states = names.map((name) => `w:${SERVER_MS}:0:${refused.includes(name) ? 10 : 1}`)
      const lacks = names.flatMap((name, i) => (refused.includes(name) ? [i + 1, 0] : []))
      call?.reply([SERVER_MS + passedMs(), ...states, ...lacks])
      await nextTurn()
    },
    /** Replies that the call came too late to be counted. */
    answerTooLate: async (call: Call | undefined) => {
      call?.reply([SERVER_MS + passedMs()])
      await nextTurn()
    },
    fail: async (call: Call | undefined, message: string) => {
      call?.fail(message)
      await nextTurn()
    },
    answerTime: async (call: Call | undefined) => {
      const nowMs = SERVER_MS + passedMs()
      call?.reply([`${Math.floor(nowMs / 1000)}`, `${(nowMs % 1000) * 1000}`])
      await nextTurn()
    },
    /** Replaces the server by another server whose time is unknown. */
    moveOn: () => {
      node = newNode()
    },
    pass: async (ms: number) => {
      for (let passed = 0; passed < ms; passed++) {
        vi.advanceTimersByTime(1)
        await nextTurn()
      }
    },
  }
}

/**
 * Creates a batch sender with `senderByHand` for a server whose time is known. An initial request, which has this
 * timeout, gets the time.
 */
export async function readySenderByHand(withinMs = 50, policy?: BatchPolicy) {
  const made = senderByHand(policy)
  made.take("first of all", withinMs)
  await nextTurn()
  await made.answerTime(made.timeCalls.shift())
  await made.answer(made.calls.shift())
  delete made.told["first of all"]
  return made
}
