import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { dynamoDBRegistry } from "../../packages/dynamodb/src/index.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { type FaultProxy, startFaultProxy } from "../servers/fault-proxy.ts"
import { type Ran, sluice } from "./in-process.ts"

const RULES = "service_id: a\nrules: [{ limit: 5, window: 1m }] # a minute\n"

let server: DynamoDBServer
let proxy: FaultProxy
let folder: string
let file: string
let tables = 0
let table: string

beforeAll(async () => {
  server = await startDynamoDB()
  proxy = await startFaultProxy(server)
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-push-"))
  file = join(folder, "rules.yaml")
  table = `rules-${++tables}`
  await run("create-table")
})
afterEach(async () => {
  proxy.before = undefined
  await rm(folder, { recursive: true, force: true })
})

function run(...argv: string[]): Promise<Ran> {
  return sluice(["rules", ...argv, "--table", table, "--endpoint", proxy.endpoint])
}

/** Runs `act` while the first document is being sent to the table. */
function meanwhile(act: () => Promise<unknown>): void {
  proxy.before = async (action) => {
    if (action !== "UpdateItem") return
    proxy.before = undefined
    await act()
  }
}

async function versionOf(service: string): Promise<number | undefined> {
  const registry = dynamoDBRegistry({ client: server.client(), tableName: table })
  return (await registry.get(service))?.version
}

describe("a file that push --write updates", () => {
  it("keeps an edit that is made during the push, so the push prints the versions instead", async () => {
    await writeFile(file, RULES)
    const edited = `${RULES.replace("limit: 5", "limit: 6")}# an hour of work\n`
    meanwhile(() => writeFile(file, edited))
    expect(await run("push", file, "--write")).toEqual({
      code: 0,
      out: "a: registered, version 1\n  + service-1m\n",
      err:
        `warning: ${file} has changed since it was read, so it was not overwritten\n` +
        "  a is version 1 in the table: write this version into the file before the next push\n",
    })
    expect(await readFile(file, "utf8")).toBe(edited)
    expect(await readdir(folder)).toEqual(["rules.yaml"])
  })

  it("keeps an edit during the push even if it only adds a byte order mark", async () => {
    await writeFile(file, RULES)
    const edited = `\ufeff${RULES}`
    meanwhile(() => writeFile(file, edited))
    expect((await run("push", file, "--write")).err).toContain("has changed since it was read")
    expect(await readFile(file, "utf8")).toBe(edited)
  })

  it("keeps its byte order mark", async () => {
    await writeFile(file, `\ufeff${RULES}`)
    expect(await run("push", file, "--write")).toMatchObject({ code: 0, err: "" })
    expect(await readFile(file, "utf8")).toBe(`\ufeffversion: 1\n${RULES}`)
  })

  it("receives the version as JSON if its name ends in .json", async () => {
    file = join(folder, "rules.json")
    await writeFile(file, '{\n\t"service_id": "a",\n\t"rules": []\n}')
    expect(await run("push", file, "--write")).toMatchObject({ code: 0, err: "" })
    expect(await readFile(file, "utf8")).toBe('{\n\t"version": 1, "service_id": "a",\n\t"rules": []\n}')
  })

  it("is not created again if it was removed during the push", async () => {
    await writeFile(file, RULES)
    meanwhile(() => rm(file))
    const { code, out, err } = await run("push", file, "--write")
    expect({ code, out }).toEqual({ code: 0, out: "a: registered, version 1\n  + service-1m\n" })
    expect(err).toMatch(
      /^warning: .*rules\.yaml cannot be written: ENOENT.*\n {2}a is version 1 in the table/,
    )
    expect(await readdir(folder)).toEqual([])
  })

  it("does not change the JSON output of the push if it cannot be written", async () => {
    const inner = join(folder, "inner")
    await mkdir(inner)
    file = join(inner, "rules.yaml")
    await writeFile(file, `${RULES}---\nservice_id: b\nrules: []\n`)
    meanwhile(() => rm(inner, { recursive: true }))
    const { code, out, err } = await run("push", file, "--write", "--json")
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({
      ok: true,
      written: false,
      services: [
        { service: "a", state: "registered", version: 1 },
        { service: "b", state: "registered", version: 1 },
      ],
    })
    expect(err).toMatch(/^warning: .* cannot be written: .*\n {2}a is version 1 .*\n {2}b is version 1 .*\n$/)
  })

  it.each([
    ["an anchor before its first name", "&d\n&k service_id: a\nrules: [{ limit: 5, window: 1m }]\n"],
    ["names behind question marks", "? service_id\n: a\n? rules\n: [{ limit: 5, window: 1m }]\n"],
    [
      "a version that a limit refers to",
      "version: &five 5\nservice_id: a\nrules: [{ limit: *five, window: 1m }]\n",
    ],
  ])("is left unchanged: %s", async (_what, text) => {
    await writeFile(file, text)
    const { code, out, err } = await run("push", file, "--write", "--force")
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^a: registered, version 1\n/) })
    expect(err).toBe(
      `warning: ${file} has a format that versions cannot be written into, so it was not changed\n` +
        "  a is version 1 in the table: write this version into the file before the next push\n",
    )
    expect(await readFile(file, "utf8")).toBe(text)
  })

  it("counts as written if it already contains the versions", async () => {
    await writeFile(file, RULES)
    expect(JSON.parse((await run("push", file, "--write", "--json")).out)).toMatchObject({ written: true })
    meanwhile(() => Promise.reject(new Error("nothing is to be registered")))
    const { out, err } = await run("push", file, "--write", "--json")
    expect(JSON.parse(out)).toMatchObject({ written: true, services: [{ state: "unchanged" }] })
    expect(err).toBe("")
    expect(JSON.parse((await run("push", file, "--json")).out)).not.toHaveProperty("written")
    expect(JSON.parse((await run("push", file, "--write", "--dry-run", "--json")).out)).not.toHaveProperty(
      "written",
    )
  })
})

describe("rules that the table cannot store", () => {
  const document = (service: string, rules: string) => `service_id: ${service}\nrules: ${rules}\n`

  it("are reported together with the rules that were registered before them", async () => {
    table = `numbers-${tables}`
    await run("create-table", "--key-type", "N")
    await writeFile(
      file,
      [document("7", "[]"), document("checkout", "[]"), document("8", "[]")].join("---\n"),
    )
    expect(await run("push", file, "--write")).toEqual({
      code: 1,
      out: "7: registered, version 1\n8: not tried\n",
      err: expect.stringMatching(/^error: Wrong rules: service_id: "checkout" is not a number.*\n$/),
    })
    expect(await readFile(file, "utf8")).toMatch(/^version: 1\nservice_id: 7\n/)
    const { services } = JSON.parse((await run("push", file, "--json")).out)
    expect(services).toMatchObject([
      { service: "7", state: "unchanged" },
      { service: "checkout", state: "failed", error: { code: "SLUICE_INVALID_RULE" } },
      { service: "8", state: "not tried" },
    ])
    expect(await versionOf("8")).toBeUndefined()
  })

  it("are reported if they are too large for an item", async () => {
    const large = Array.from(
      { length: 4_000 },
      (_, at) => `{"name":"${String(at).padEnd(64, "n")}","limit":1,"window":"1m"}`,
    )
    await writeFile(file, [document("a", "[]"), document("b", `[${large}]`)].join("---\n"))
    const { code, out, err } = await run("push", file)
    expect({ code, out }).toEqual({ code: 1, out: "a: registered, version 1\n" })
    expect(err).toMatch(
      /^error: Wrong rules: rules: the rules of service "b" have \d+ bytes, which is too large for a DynamoDB item.*\n$/,
    )
  })
})

it("push --write treats a service that is named twice as one", async () => {
  await writeFile(file, RULES)
  expect(await run("push", file, "--service", "a", "--service", "a")).toEqual({
    code: 0,
    out: "a: registered, version 1\n  + service-1m\n",
    err: "",
  })
  expect((await run("diff", file, "--service", "a", "--service", "a")).out.match(/the same/g)).toHaveLength(1)
  await writeFile(file, "rules: []\n")
  expect((await run("push", file, "--service", "b", "--service", "b")).out).toBe("b: registered, version 1\n")
})
