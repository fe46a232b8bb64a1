import { createLimiter } from "@sluice/core"
import { describe, expect, it } from "vitest"
import type { ReadLogOptions } from "./log.ts"
import { readInput } from "./testing/read-all.ts"

const CLF = '[03/Jun/2025:08:00:00 +0000] "GET /a?page=2 HTTP/1.1" 200 5'
const COMBINED = `192.0.2.1 - ann ${CLF} "-" "test"`
const ASKED = [
  ...["service", "ip", "method", "query:page", "header:user-agent", "header:x-key", "cookie:sid", "user_id"],
  ...["body:email", "param:id", "route"],
]

async function fieldsOf(line: string, options?: ReadLogOptions): Promise<readonly string[]> {
  const { records } = await readInput(line, options)
  expect(records).toHaveLength(1)
  return ASKED.filter((name) => records[0]?.onlyFields?.has(name))
}

describe("onlyFields", () => {
  it.each<[string, string, ReadLogOptions, readonly string[]]>([
    ["common", `192.0.2.1 - - ${CLF}`, {}, ["service", "ip", "method", "query:page"]],
    ["combined", COMBINED, {}, ["service", "ip", "method", "query:page", "header:user-agent"]],
    [
      "mapped",
      COMBINED,
      { map: { user_id: "remote_user" } },
      ["service", "ip", "method", "query:page", "header:user-agent", "user_id"],
    ],
    [
      "custom",
      '1748937600.5 "k" "s"',
      { format: '$msec "$http_x_key" "$cookie_sid"' },
      ["service", "header:x-key", "cookie:sid"],
    ],
    [
      "custom with all cookies",
      '1748937600.5 "GET" "sid=1" "s"',
      { format: '$msec "$request_method" "$http_cookie" "$cookie_sid"' },
      ["service", "method", "cookie:sid"],
    ],
    ["custom without the query", "1748937600 /a GET", { format: "%{sec}t %U %m" }, ["service", "method"]],
    [
      "JSON",
      '{"t":1748937600,"u":"/a","k":"x"}',
      { map: { time: "t", url: "u", "header:X-Key": "k", user_id: "none" } },
      ["service", "query:page", "header:x-key", "user_id"],
    ],
    [
      "all headers",
      '{"time":1748937600000,"req":{"method":"GET","url":"/","headers":{"a":"b"}},"responseTime":1}',
      {},
      ["service", "ip", "method", "query:page", "header:user-agent", "header:x-key", "cookie:sid"],
    ],
    [
      "headers that a logger hides",
      '{"ts":1748937600,"request":{"method":"GET","uri":"/","headers":{"Cookie":["REDACTED"],"X-Key":["REDACTED"]}}}',
      {},
      ["service", "ip", "method", "query:page", "header:user-agent"],
    ],
    [
      "a header that Traefik keeps",
      '{"RequestMethod":"GET","RequestPath":"/","StartUTC":"2025-06-03T08:00:00Z","request_X-Key":"k"}',
      {},
      ["service", "ip", "method", "query:page", "header:x-key"],
    ],
  ])("contains the fields that the log shows: %s", async (_, line, options, expected) => {
    expect(await fieldsOf(line, options)).toEqual(expected)
  })

  it("is one set for all records of a format", async () => {
    const log = [COMBINED, COMBINED, COMBINED].join("\n")
    for (const options of [{}, { map: { user_id: "remote_user" } }]) {
      expect(new Set((await readInput(log, options)).records.map(({ onlyFields }) => onlyFields)).size).toBe(
        1,
      )
    }
    const hidden = (value: string): string =>
      `{"ts":1748937600,"request":{"method":"GET","uri":"/","headers":{"Cookie":["${value}"]}}}`
    const caddy = await readInput(
      [hidden("REDACTED"), hidden("a"), hidden("REDACTED"), hidden("b")].join("\n"),
    )
    const sets = caddy.records.map(({ onlyFields }) => onlyFields)
    expect(sets[0]).toBe(sets[2])
    expect(sets[1]).toBe(sets[3])
    expect(sets[0]).not.toBe(sets[1])
  })

  it("prevents a limiter from applying rules to fields that no log contains", async () => {
    const { records } = await readInput(COMBINED)
    const rule = (name: string, field: string) => ({ name, field, limit: 1, window: "1 minute" }) as const
    const limiter = createLimiter({
      rules: [rule("a", "query:page"), rule("b", "header:x-key"), rule("c", "body:email"), rule("d", "ip")],
    })
    const decision = await limiter.decide(records[0] ?? {})
    expect(decision.checks.map(({ policy }) => policy)).toEqual(["a", "d"])
    await limiter.close()
  })
})
