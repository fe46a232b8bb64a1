import { describe, expect, it } from "vitest"
import { ReplyOrder } from "./arrivals.ts"

/** A reply, with the send time of its call, the server's time, and whether a later reply has overtaken it. */
type Row = readonly [sentAtMs: number, nowMs: number | undefined, isOvertaken: boolean]

describe("ReplyOrder", () => {
  it.each<{ readonly what: string; readonly replies: readonly Row[] }>([
    {
      what: "no reply if replies are read in the order of their calls, even at one instant",
      replies: [
        [1, 100, false],
        [2, 101, false],
        [2, 101, false],
      ],
    },
    {
      what: "two replies if the reply to the third call is read first",
      replies: [
        [3, 100, false],
        [1, 100, true],
        [2, 100, true],
      ],
    },
    {
      what: "a reply whose call was sent at the same instant, if the server's clock went back",
      replies: [
        [1, 100, false],
        [1, 102, false],
        [1, 101, true],
      ],
    },
    {
      what: "a reply that follows a reply without a time, if the server's clock went back",
      replies: [
        [1, 100, false],
        [2, undefined, false],
        [3, 99, true],
      ],
    },
  ])("marks as overtaken $what", ({ replies }) => {
    const order = new ReplyOrder()
    const found = replies.map(([sentAtMs, nowMs]) => order.add(sentAtMs, nowMs).isOvertaken)
    expect(found).toEqual(replies.map(([, , isOvertaken]) => isOvertaken))
  })
})
