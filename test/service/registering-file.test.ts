import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileFirst, rulesInMemory } from "@sluice/service"
import { expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { DOORS } from "./door-clients.ts"
import { startService } from "./started.ts"

const FAILED_PRECONDITION = 9
const UNAVAILABLE = 14

const rule = (limit: number) => ({ name: "rule", rate: { requests_per_unit: limit, unit: "day" } })
const document = (service_id: number, limit: number) => ({ service_id, rules: [rule(limit)] })

it.each(DOORS)(
  "a service of the file can only be changed there, and all others over %s",
  async (_, open) => {
    const folder = await mkdtemp(join(tmpdir(), "sluice-"))
    const path = join(folder, "rules.yaml")
    // JSON is valid YAML. Rename a new file as editors do, so that a half-written file is never read.
    const write = async (text: string): Promise<void> => {
      await writeFile(`${path}.new`, text)
      await rename(`${path}.new`, path)
    }
    await write(JSON.stringify([document(1, 5)]))
    const started = await startService(fileFirst(path, rulesInMemory(), { pollMs: 10 }))
    const door = open(started)
    const limitOf = async (service_id: number) =>
      (await door.call("ShouldForwardRequest", { service_id, peek: true })).value.limit
    const isForced = (service_id: number, limit: number) =>
      until(
        `service ${service_id} has limit ${limit}`,
        async () => (await limitOf(service_id)) === limit,
        20_000,
      )
    try {
      for (const [method, more] of [
        ["RegisterService", { rule: rule(9) }],
        ["RegisterService", { rules: [rule(9)], overwrite: true }],
        // Also rules that the file already has. A caller that gets success would expect that it can change them.
        ["RegisterService", { rules: [rule(5)] }],
        ["GetService", {}],
        ["RemoveService", { overwrite: true }],
      ] as const) {
        const { code, message } = await door.call(method, { service_id: 1, ...more })
        expect([code, message]).toEqual([
          FAILED_PRECONDITION,
          'The rules of service "1" are in rules.yaml; change them there.',
        ])
      }
      await door.call("RegisterService", { service_id: 2, rules: [rule(9)] })
      expect([await limitOf(1), await limitOf(2)]).toEqual([5, 9])

      await write(JSON.stringify([document(1, 6), document(2, 7)]))
      await isForced(1, 6)
      await isForced(2, 7)
      const taken = await door.call("RegisterService", { service_id: 2, rules: [rule(8)], version: 1 })
      expect(taken.code).toBe(FAILED_PRECONDITION)

      await write("[")
      // A load that began before may have read the old content.
      const isUnavailable = async (): Promise<boolean> =>
        (await door.call("RegisterService", { service_id: 1, rules: [rule(8)] })).code === UNAVAILABLE
      await until("the file cannot be read", isUnavailable)
      for (const service_id of [1, 2, 3]) {
        const { code, message } = await door.call("RegisterService", { service_id, rules: [rule(8)] })
        expect([code, message]).toEqual([UNAVAILABLE, expect.stringContaining("rules.yaml")])
      }
      expect([await limitOf(1), await limitOf(2)]).toEqual([6, 7])

      await write(JSON.stringify([document(1, 5)]))
      await isForced(2, 9)
      const { value } = await door.call("RegisterService", { service_id: 2, rules: [rule(8)], version: 1 })
      expect(value).toMatchObject({ version: 2 })
      expect(await limitOf(2)).toBe(8)
      expect(started.faults).toEqual([])
    } finally {
      door.close()
      await started.stop()
      await rm(folder, { recursive: true })
    }
  },
  90_000,
)
