import { createReplay, type ReplayRequest } from "@sluice/core/replay"
import { describe, expect, it } from "vitest"
import { LogError } from "../log-error.ts"
import { checkBounds, parseBound } from "./bounds.ts"
import { NeverList } from "./never-list.ts"

const shown = (name: string) => name
const total = { seen: 1_000, refused: 5, clients: { seen: 200, refused: 3 } }

describe("the bounds of a replay", () => {
  it.each([
    ["5", true],
    ["4", false],
    ["0.5%", true],
    ["0.49%", false],
    ["0.499999%", false],
    ["0", false],
  ])("hold up to the number or share itself: at most %s of 5 in 1,000", (text, holds) => {
    const bound = parseBound(text)
    expect(checkBounds({ maxRefused: bound }, { total }, shown)).toMatchObject([
      { bound: `--max-refused ${text}`, holds },
    ])
  })

  it("are exact for shares with decimals", () => {
    const all = { ...total, seen: 10_000 }
    for (let refused = 1; refused < 100; refused++) {
      const bound = parseBound(`${refused / 100}%`)
      const holds = (more: number) =>
        checkBounds({ maxRefused: bound }, { total: { ...all, refused: refused + more } }, shown)[0]?.holds
      expect([refused, holds(0), holds(1)]).toEqual([refused, true, false])
    }
  })

  it("are checked for clients and for requests that are newly refused", () => {
    const against = {
      file: "old.yaml",
      newlyRefused: { requests: 7, clients: 1 },
      noLongerRefused: { requests: 0, clients: 0 },
      rules: [],
      clients: [],
    }
    const bounds = {
      maxRefusedClients: parseBound("1%"),
      maxNewlyRefused: parseBound("6"),
    }
    expect(checkBounds(bounds, { total, against }, shown)).toEqual([
      { bound: "--max-refused-clients 1%", value: "3 of 200, 1.5%", holds: false },
      { bound: "--max-newly-refused 6", value: "7", holds: false },
    ])
    expect(checkBounds({}, { total, against }, shown)).toEqual([])
  })

  it.each(["", "-1", "1e3", "101%", "%", "0.1", "12345678901234567", "5 %"])(
    "cannot be the text %j",
    (text) => {
      expect(parseBound(text)).toBeUndefined()
    },
  )
})

describe("NeverList", () => {
  const list = (text: string) => new NeverList("known.txt", text)

  /** Returns the listed clients that a rule refuses at their second request. */
  function found(
    text: string,
    field: string | string[],
    ...requests: Partial<ReplayRequest>[]
  ): readonly string[] {
    const never = list(text)
    const replay = createReplay({ rules: [{ field, limit: 1, window: "1 minute", cost: 1 }] })
    for (const request of requests) {
      replay.offer({ ...request, atMs: 5 })
      const verdict = replay.offer({ ...request, atMs: 5 })
      expect(verdict.allowed).toBe(false)
      never.refused(verdict)
    }
    return never.found
  }
  const from = (remoteAddress: string) => ({ remoteAddress })

  it("finds addresses and networks by the client's own address", () => {
    const text =
      "\ufeff# partners\r\n192.0.2.7\r\n198.51.100.0/24\r\n2001:db8:0:1::9\n2001:db8:0:2::100/120\n2001:db8:9::/48\n"
    expect(found(text, "ip", from("192.0.2.8"), from("2001:db8:0:1::8"), from("2001:db8:0:2::205"))).toEqual(
      [],
    )
    const listed = ["192.0.2.7", "198.51.100.99", "2001:db8:0:1::9", "2001:db8:0:2::105", "2001:db8:9:7::1"]
    expect(found(text, "ip", ...listed.map(from))).toEqual(listed)
  })

  it("finds values of fields, including several fields and long values", () => {
    const long = "x".repeat(200)
    const by = (value: string) => ({ headers: { "x-user": value } })
    expect(
      found(`ann\n@partner\n${long}`, "header:x-user", by("ann"), by("@partner"), by(long), by("ben")),
    ).toEqual(["ann", "@partner", long])
    const pair = { method: "GET", headers: { "x-user": "ann" } }
    expect(found("ann", ["header:x-user", "method"], pair)).toEqual(["ann"])
  })

  it("does not mistake a name for an address", () => {
    expect(found("10.0.0.0/8", "header:x-user", { headers: { "x-user": "10.0.0.5/x" } })).toEqual([])
  })

  it("shows one client, and the number of the other clients", () => {
    const never = list("192.0.2.0/24")
    const bound = () => checkBounds({ never }, { total }, (name) => `<${name}>`)
    expect(bound()).toEqual([{ bound: "--never known.txt", value: "none of them is refused", holds: true }])
    const replay = createReplay({
      rules: [{ field: "ip", limit: 1, window: "1 minute", deny: ["192.0.2.0/24"] }],
    })
    for (const host of [1, 2, 3]) never.refused(replay.offer({ remoteAddress: `192.0.2.${host}`, atMs: 5 }))
    expect(bound()).toEqual([
      { bound: "--never known.txt", value: "refused: <192.0.2.1> and 2 more", holds: false },
    ])
  })

  it.each([
    "192.0.2.0/33",
    "192.0.2.0/x",
    "2001:db8::/129",
    "192.0.2./24",
    "2001:db8:::/32",
    "192.0.2.0/24/8",
  ])("rejects the network %s", (text) => {
    expect(() => list(text)).toThrow(LogError)
    expect(() => list(text)).toThrow(`${text} in known.txt is not a network`)
  })
})
