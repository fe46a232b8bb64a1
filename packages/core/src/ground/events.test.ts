import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { InvalidOptionError } from "./errors.ts"
import { SafeEvents } from "./events.ts"

type Table = { said: [text: string]; done: [] }

function setUp() {
  const failures: [unknown, keyof Table][] = []
  const names = { said: true, done: true } as const
  return { failures, events: new SafeEvents<Table>(names, (error, name) => failures.push([error, name])) }
}

describe("events", () => {
  it("call the listeners of their name in the order of registration", () => {
    const { events } = setUp()
    const heard: string[] = []
    events.on("said", (text) => heard.push(`first ${text}`))
    events.on("said", (text) => heard.push(`second ${text}`))
    events.on("done", () => heard.push("done"))
    events.emit("said", "a")
    expect(heard).toEqual(["first a", "second a"])
  })

  it("reject a listener for an unknown event and a listener that is not a function", () => {
    const { events } = setUp()
    const refused = (name: string, listener: unknown) => {
      let thrown: unknown
      try {
        events.on(name as "said", listener as () => void)
      } catch (error) {
        thrown = error
      }
      expect(thrown).toBeInstanceOf(InvalidOptionError)
      return (thrown as InvalidOptionError).problems
    }
    const accepted = "said, done"
    expect(refused("siad", () => undefined)).toEqual([
      { path: "on", message: '"siad" is not an event', accepted },
    ])
    expect(refused("toString", () => undefined)).toMatchObject([{ accepted }])
    expect(refused("said", undefined)).toEqual([
      { path: "on", message: 'the listener for "said" is not a function', accepted: "a function" },
    ])
    expect(events.has("said")).toBe(false)
  })

  it("report whether an event has listeners", () => {
    const { events } = setUp()
    const listener = () => undefined
    expect(events.has("said")).toBe(false)
    events.off("said", listener)
    events.on("said", listener)
    expect([events.has("said"), events.has("done")]).toEqual([true, false])
    events.off("said", () => undefined)
    expect(events.has("said")).toBe(true)
    events.off("said", listener)
    expect(events.has("said")).toBe(false)
  })

  it("let listeners add or remove listeners, which takes effect with the next event", () => {
    const { events } = setUp()
    const heard: string[] = []
    const once = () => {
      heard.push("once")
      events.off("said", once)
      events.on("said", () => heard.push("added"))
    }
    events.on("said", once)
    events.on("said", () => heard.push("always"))
    events.emit("said", "a")
    expect(heard).toEqual(["once", "always"])
    events.emit("said", "b")
    expect(heard).toEqual(["once", "always", "always", "added"])
  })

  it("call the other listeners after one throws or rejects, and report its error", async () => {
    const { events, failures } = setUp()
    const heard: string[] = []
    const [now, later] = [new Error("now"), new Error("later")]
    events.on("said", () => {
      throw now
    })
    events.on("said", async () => {
      throw later
    })
    events.on("said", (text) => heard.push(text))
    events.emit("said", "a")
    await nextTurn()
    expect(heard).toEqual(["a"])
    expect(failures).toEqual([
      [now, "said"],
      [later, "said"],
    ])
  })

  it("call no listener after they have been cleared", () => {
    const { events } = setUp()
    let heard = 0
    events.on("done", () => heard++)
    events.clear()
    events.emit("done")
    expect([heard, events.has("done")]).toEqual([0, false])
  })
})
