import { describe, expect, it } from "vitest"
import { type ReservedUnits, readReservation, writeReservation } from "./reservation.ts"

const UNITS: ReservedUnits = {
  service: "chat",
  id: "AbCdEfGhIjKl",
  untilMs: 1_704_067_800_000,
  lifetimeMs: 600_000,
  counters: [
    {
      counter: "Zk3hX0pQ9vLm2TcY",
      partition: "Zoë 1",
      limit: 60,
      burst: 0,
      unitCost: 1,
      taken: 1,
      startMs: 1_704_067_200_000,
      current: 3,
      previous: 2,
      endMs: 0,
    },
  ],
}

describe("the text of a reservation", () => {
  it("is printable ASCII and is read back as the same content", () => {
    const text = writeReservation(UNITS)
    expect(text).toMatch(/^[\w-]+$/)
    expect(readReservation(text)).toEqual(UNITS)
  })

  it("of three rules has about 340 characters", () => {
    const [counter] = UNITS.counters as [ReservedUnits["counters"][number]]
    const three = {
      ...UNITS,
      counters: ["203.0.113.10", "203.0.113.10", ""].map((partition) => ({ ...counter, partition })),
    }
    expect(writeReservation(three).length).toBeLessThan(380)
  })

  it.each([
    ["nothing", undefined],
    ["a number", 7],
    ["an empty text", ""],
    ["text in another encoding", "{}"],
    ["base64url that is not JSON", "AAAA"],
    ["a text that is too long", "A".repeat(8_193)],
  ])("is not %s", (_, text) => {
    expect(readReservation(text)).toBeUndefined()
  })

  it.each([
    ["another version", [2, "chat", "id", 1, 1, []]],
    ["a missing member", [1, "chat", "id", 1, []]],
    ["a service that is no text", [1, 7, "id", 1, 1, []]],
    ["an id that is no text", [1, "chat", 7, 1, 1, []]],
    ["a negative time", [1, "chat", "id", -1, 1, []]],
    ["a fraction of a lifetime", [1, "chat", "id", 1, 0.5, []]],
    ["rows that are no list", [1, "chat", "id", 1, 1, {}]],
    ["a row that is too short", [1, "chat", "id", 1, 1, [["c", "p", 1]]]],
    ["a row of texts", [1, "chat", "id", 1, 1, [["c", "p", "1", 0, 1, 1, 1, 1, 1]]]],
    ["negative units", [1, "chat", "id", 1, 1, [["c", "p", 1, 0, 1, -1, 1, 1, 1]]]],
    ["an object", { 0: 1 }],
  ])("has not %s", (_, content) => {
    expect(readReservation(Buffer.from(JSON.stringify(content)).toString("base64url"))).toBeUndefined()
  })
})
