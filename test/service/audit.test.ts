import { RuleSourceError } from "@sluice/core"
import type { RegisteredRules } from "@sluice/rules"
import { auditTo, rulesInMemory, tokens } from "@sluice/service"
import { expect, it } from "vitest"
import { DOORS, type Door } from "./door-clients.ts"
import { openService } from "./started.ts"

/** Creates a log that stores lines as pino would write them. */
function keptLog() {
  const lines: { level: string; fields: Record<string, unknown>; message: string }[] = []
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields: JSON.parse(JSON.stringify(fields)), message })
  }
  return { lines, log: { info: at("info"), warn: at("warn") } }
}

const rate = { requests_per_unit: 5, unit: "minute" }
const PEER = expect.stringMatching(/^127\.0\.0\.1:\d+$/)

it.each(DOORS)(
  "each change over %s logs a line with the caller and the rules before and after",
  async (_, open) => {
    const { lines, log } = keptLog()
    const started = await openService(rulesInMemory(), {
      audit: auditTo(log),
      tokens: tokens({ 1: "the-token" }),
    })
    const door: Door = open(started)
    const call = (method: string, request: object) =>
      door.call(method, { service_id: 1, ...request }, "the-token")
    const lists = {
      name: "lists",
      field: "ip",
      rate,
      allow: ["192.0.2.1", "192.0.2.2"],
      deny: ["192.0.2.3"],
      overrides: { "192.0.2.4": { limit: 2 }, "192.0.2.5": { limit: 3 } },
      match: { methods: ["POST"], path: "/pay", fields: { plan: { values: ["gold", "silver"] } } },
    }
    const [one, two] = [
      { version: 1, rules: [{ name: "plain", rate }] },
      {
        version: 2,
        rules: [
          {
            ...{ name: "lists", field: "ip", rate, allow: 2, deny: 1, overrides: 2 },
            match: { methods: ["POST"], path: "/pay", fields: { plan: 2 } },
          },
        ],
      },
    ]
    await call("RegisterService", { rules: [{ name: "plain", rate }] })
    await call("RegisterService", { rules: [lists], version: 1 })
    // None of these calls changes the rules.
    await call("RegisterService", { rules: [lists] })
    await call("RegisterService", { rules: [], version: 7 })
    await call("RegisterService", { rules: [{}], version: 2 })
    await call("GetService", {})
    await call("RemoveService", { version: 7 })
    await door.call("RemoveService", { service_id: 1, overwrite: true }, "another-token")
    await call("RemoveService", { version: 2 })
    await call("RemoveService", { version: 2 })
    expect(lines).toEqual([
      { level: "info", fields: { service: "1", peer: PEER, after: one }, message: "Rules were registered." },
      {
        level: "info",
        fields: { service: "1", peer: PEER, before: one, after: two },
        message: "Rules were registered.",
      },
      { level: "info", fields: { service: "1", peer: PEER, before: two }, message: "Rules were removed." },
    ])
    expect(JSON.stringify(lines)).not.toMatch(/token|192\.0\.2|gold|silver/)
    door.close()
  },
)

it("a change that the registry failed to store is logged as a failure", async () => {
  const { lines, log } = keptLog()
  const home = rulesInMemory()
  const lost = async () => {
    throw new RuleSourceError("no answer")
  }
  const before = await home.registry.register("1", [{ name: "plain", limit: 5, window: "1 minute" }])
  const registry = { ...home.registry, register: lost, remove: lost }
  const started = await openService({ ...home, registry }, { audit: auditTo(log) })
  const door = DOORS[0]?.[1](started) as Door
  const rules = [{ name: "new", rate }]
  expect((await door.call("RegisterService", { service_id: 1, rules, version: 1 })).code).toBe(14)
  expect((await door.call("RemoveService", { service_id: 1, version: 1 })).code).toBe(14)
  const there = { version: before.version, rules: [{ name: "plain", rate }] }
  const fields = { service: "1", peer: PEER, before: there, err: expect.anything() }
  expect(lines).toEqual([
    {
      level: "warn",
      fields: { ...fields, after: { rules } },
      message:
        "Registering rules failed. See err for the cause, and for whether the rules may have changed nevertheless.",
    },
    {
      level: "warn",
      fields,
      message:
        "Removing rules failed. See err for the cause, and for whether the rules may have changed nevertheless.",
    },
  ])
  door.close()
})

it("rules that cannot be read back are logged, although they were registered", async () => {
  const { lines, log } = keptLog()
  const { source, registry } = rulesInMemory()
  let isGone = false
  const load = async (service: string): ReturnType<typeof source.load> => {
    if (isGone) throw new RuleSourceError("gone")
    return source.load(service)
  }
  const started = await openService({ source: { ...source, load }, registry }, { audit: auditTo(log) })
  const door = DOORS[0]?.[1](started) as Door
  isGone = true
  const answered = await door.call("RegisterService", { service_id: 1, rules: [{ name: "new", rate }] })
  expect(answered).toMatchObject({ code: 0, value: { version: 1 } })
  expect(lines.map(({ level, message }) => [level, message])).toEqual([
    ["info", "Rules were registered."],
    ["warn", "Rules were changed, but this instance could not load them yet. See err for the cause."],
  ])
  expect(((await registry.get("1")) as RegisteredRules).version).toBe(1)
  door.close()
})
