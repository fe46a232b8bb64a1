import { readdir, readFile, writeFile } from "node:fs/promises"
import type { RequestListener } from "node:http"
import { join } from "node:path"
import { PutItemCommand } from "@aws-sdk/client-dynamodb"
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import { dynamoDBRegistry } from "../../packages/dynamodb/src/index.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { startFaultProxy } from "../servers/fault-proxy.ts"
import { type HttpServer, startHttpServer } from "../servers/http-server.ts"
import { useFolder } from "./folder.ts"
import { type Ran, type Surroundings, sluice } from "./in-process.ts"

const RULES = `# what the shop allows
service_id: checkout
rules:
  - name: per-user # each of them
    field: user_id
    rate: { requests_per_unit: 5, unit: minute }
  - name: daily
    limit: 10
    window: 1 day
`

const { folder } = useFolder()
let server: DynamoDBServer
let file: string
let tables = 0
let table: string
const registry = () => dynamoDBRegistry({ client: server.client(), tableName: table })

beforeAll(async () => {
  server = await startDynamoDB()
})
afterAll(() => server.stop())
beforeEach(async () => {
  table = `rules-${++tables}`
  file = join(folder, `${table}.yaml`)
  await writeFile(file, RULES)
  await run("create-table")
})

/** Runs `sluice rules` on the test's own table. */
function run(...argv: string[]): Promise<Ran> {
  return runWith({}, ...argv)
}

function runWith(surroundings: Surroundings, ...argv: string[]): Promise<Ran> {
  return sluice(["rules", ...argv, "--table", table, "--endpoint", server.endpoint], surroundings)
}

async function json(...argv: string[]): Promise<Record<string, unknown>> {
  return JSON.parse((await run(...argv, "--json")).out)
}

describe("create-table", () => {
  it("creates a table and waits until it can be used, and accepts an existing one", async () => {
    expect(await run("create-table")).toEqual({ code: 0, out: `table ${table} is ready\n`, err: "" })
    expect(await json("create-table")).toEqual({ ok: true, table })
  })

  it("creates a table whose key is a number if requested", async () => {
    table = "numbers"
    expect((await run("create-table", "--key-type", "N")).code).toBe(0)
    expect((await run("create-table", "--key-type", "S")).code).toBe(3)
    const pushed = await run("push", file, "--service", "checkout")
    expect(pushed.code).not.toBe(0)
    expect((await runWith({ stdin: "rules: []" }, "push", "-", "--service", "7")).out).toContain(
      "7: registered",
    )
  })
})

describe("the metadata of a service", () => {
  const METADATA = "metadata:\n  owner: shop\n  contact: '#shop'\n"

  it("is pushed, shown by diff and list, pulled, and kept by a push without metadata", async () => {
    await writeFile(file, METADATA + RULES)
    expect((await run("push", file)).out).toContain(
      'checkout: registered, version 1\n  + per-user\n  + daily\n  ~ metadata\n      owner: (not given) -> "shop"\n',
    )
    expect((await run("push", file)).out).toBe("checkout: unchanged, version 1\n")
    expect((await run("list")).out).toBe(
      "service   version  rules  problems  owner  contact\ncheckout  1        2      0         shop   #shop\n",
    )
    expect(await json("list")).toMatchObject({
      services: [{ metadata: { owner: "shop", contact: "#shop" } }],
    })
    expect((await run("pull")).out).toMatch(/^service_id: checkout\nversion: 1\nmetadata:\n {2}owner: shop\n/)
    await writeFile(file, RULES)
    expect((await run("diff", file)).out).toBe(
      "checkout: the same; version 1 in the table, none in the file\n",
    )
    await writeFile(file, RULES.replace("limit: 10", "limit: 20"))
    await run("push", file, "--if-version", "1")
    expect(await registry().get("checkout")).toMatchObject({ version: 2, metadata: { owner: "shop" } })
  })

  it("is changed or removed by a push with other metadata", async () => {
    await writeFile(file, METADATA + RULES)
    await run("push", file)
    await writeFile(file, `version: 1\nmetadata: { owner: pay }\n${RULES}`)
    const changed = await run("diff", file)
    expect(changed).toMatchObject({ code: 1, out: expect.stringContaining('owner: "shop" -> "pay"') })
    expect(changed.out).toContain('contact: "#shop" -> (not given)')
    expect(await json("diff", file)).toMatchObject({ services: [{ metadata: [{ member: "owner" }, {}] }] })
    await writeFile(file, `version: 1\nmetadata: {}\n${RULES}`)
    expect((await run("push", file, "--write")).code).toBe(0)
    expect(await registry().get("checkout")).not.toHaveProperty("metadata")
    expect(await readFile(file, "utf8")).toContain("version: 2\nmetadata: {}\n")
    expect((await run("list")).out).toBe("service   version  rules  problems\ncheckout  2        2      0\n")
  })
})

describe("push", () => {
  it("registers the rules of a new service as version 1", async () => {
    expect(await run("push", file)).toEqual({
      code: 0,
      out: "checkout: registered, version 1\n  + per-user\n  + daily\n",
      err: "",
    })
    expect(await registry().get("checkout")).toEqual({
      service: "checkout",
      version: 1,
      rules: [
        { name: "per-user", field: "user_id", limit: 5, window: "1 minute" },
        { name: "daily", limit: 10, window: "1 day" },
      ],
      problems: [],
    })
  })

  it("does not write rules that the table already contains, even if the file's version differs", async () => {
    await run("push", file)
    expect(await run("push", file)).toEqual({ code: 0, out: "checkout: unchanged, version 1\n", err: "" })
    await writeFile(
      file,
      RULES.replace("limit: 10\n    window: 1 day", "rate: { requests_per_unit: 10, unit: day }"),
    )
    expect((await run("push", file)).out).toBe("checkout: unchanged, version 1\n")
    expect((await registry().get("checkout"))?.version).toBe(1)
  })

  it("registers a change based on the current version, and prints the version that the change replaces", async () => {
    await run("push", file)
    await writeFile(file, `version: 1\n${RULES.replace("limit: 10", "limit: 20")}`)
    expect(await run("push", file)).toEqual({
      code: 0,
      out: "checkout: registered, version 2 (was 1)\n  ~ daily\n      limit: 10 -> 20\n",
      err: "",
    })
  })

  it("rejects a change based on another version, reports what is stored and what to do, and writes nothing", async () => {
    await run("push", file)
    await writeFile(file, RULES.replace("limit: 10", "limit: 20"))
    const { code, out, err } = await run("push", file)
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(err).toBe(
      `checkout: not registered: the rules in ${file} were written for a new service, but the table has version 1\n` +
        "  the push would change:\n  ~ daily\n      limit: 10 -> 20\n" +
        "  to replace these rules, check them with pull, then push with --if-version 1\n",
    )
    expect((await registry().get("checkout"))?.version).toBe(1)
    expect(await json("push", file)).toMatchObject({
      ok: false,
      services: [{ state: "conflict", service: "checkout", tableVersion: 1, changed: [{ rule: "daily" }] }],
    })
    expect((await run("push", file, "--if-version", "1")).out).toContain(
      "checkout: registered, version 2 (was 1)",
    )
  })

  it("rejects a change to rules that have been removed in the meantime", async () => {
    await writeFile(file, `version: 3\n${RULES}`)
    const { code, err } = await run("push", file)
    expect(code).toBe(1)
    expect(err).toContain(
      "are based on version 3, but the table no longer has rules for it\n  to register them again",
    )
    expect((await run("push", file, "--if-version", "0")).code).toBe(0)
  })

  it("replaces rules that were stored by hand without a version only if the file has version 0", async () => {
    const byHand = { M: { limit: { N: "7" }, window: { S: "1 day" } } }
    const put = { TableName: table, Item: { service_id: { S: "checkout" }, rules: { L: [byHand] } } }
    await server.client().send(new PutItemCommand(put))
    const before = await registry().get("checkout")
    const refused = await run("push", file)
    expect(refused.code).toBe(1)
    expect(refused.err).toContain(
      `checkout: not registered: the rules in ${file} were written for a new service, but the table has rules without a version\n`,
    )
    expect(refused.err).toContain(
      "to replace these rules, check them with pull, then push with --if-version 0\n",
    )
    expect(await registry().get("checkout")).toEqual(before)
    await writeFile(file, RULES.replace("rules:", "version: 0 # as pulled\nrules:"))
    expect(await run("push", file)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^checkout: registered, version 1 \(was 0\)\n/),
    })
  })

  it("replaces any version with --force", async () => {
    await run("push", file)
    await writeFile(file, "service_id: checkout\nversion: 77\nrules: []\n")
    expect((await run("push", file, "--force")).out).toBe(
      "checkout: registered, version 2 (was 1)\n  - per-user\n  - daily\n",
    )
  })

  it("registers none of several services if one has a conflict", async () => {
    await run("push", file)
    await writeFile(
      file,
      `service_id: a\nrules: []\n---\n${RULES.replace("10", "20")}---\nservice_id: b\nrules: []\n`,
    )
    const { code, out, err } = await run("push", file)
    expect({ code, out }).toEqual({ code: 1, out: "a: not tried\nb: not tried\n" })
    expect(err).toContain("checkout: not registered")
    expect(await registry().get("a")).toBeUndefined()
    expect((await run("push", file, "--service", "a", "--service", "b")).out).toBe(
      "a: registered, version 1\nb: registered, version 1\n",
    )
  })

  it("prints the changes and writes nothing with --dry-run", async () => {
    const { code, out } = await run("push", file, "--dry-run", "--write")
    expect({ code, out }).toEqual({ code: 0, out: "checkout: would register\n  + per-user\n  + daily\n" })
    expect(await registry().get("checkout")).toBeUndefined()
    expect(await readFile(file, "utf8")).toBe(RULES)
    await run("push", file)
    await writeFile(file, RULES.replace("10", "20"))
    expect((await run("push", file, "--dry-run")).code).toBe(1)
  })

  it("rejects a file that is longer than --max-bytes, as diff does", async () => {
    const short = ["--max-bytes", "9"]
    for (const command of ["push", "diff"]) {
      const { code, err } = await run(command, file, ...short)
      expect([code, err]).toEqual([2, expect.stringContaining("has more than 9 bytes: shorten it, or raise")])
    }
    expect(await registry().get("checkout")).toBeUndefined()
  })

  it("registers nothing from a file with problems, and prints them on standard error", async () => {
    await writeFile(file, RULES.replace("unit: minute", "unit: minit"))
    const { code, out, err } = await run("push", file)
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(err).toMatch(/:6:\d+: rules\[0\]\.rate\.unit: "minit" is not a unit; did you mean "minute"\?\n/)
    expect(err).toMatch(/\n1 problem in .*: nothing was changed\n$/)
    expect(await json("push", file)).toMatchObject({ ok: false, problems: [{ file, line: 6 }] })
    expect(await registry().get("checkout")).toBeUndefined()
  })

  it("requires --service if the file does not name a service", async () => {
    await writeFile(file, "rules: []\n")
    expect(await run("push", file)).toEqual({
      code: 2,
      out: "",
      err: `error: ${file}:1: the document has no service_id: add one, or name the service with --service\n`,
    })
    expect((await run("push", file, "--service", "search")).out).toBe("search: registered, version 1\n")
    expect((await run("push", file, "--service", "a", "--service", "b")).err).toContain(
      'has no rules for service "a"; it has no services',
    )
    await writeFile(file, RULES)
    expect((await run("push", file, "--service", "search")).err).toContain('it has "checkout"')
    await writeFile(file, `${RULES}---\nservice_id: b\nrules: []\n`)
    expect((await run("push", file, "--if-version", "1")).err).toContain("--if-version is for one service")
  })

  it("writes the new versions into the file with --write, and changes nothing else", async () => {
    await run("push", file, "--write")
    const first = await readFile(file, "utf8")
    expect(first).toBe(RULES.replace("service_id", "version: 1\nservice_id"))
    await writeFile(file, first.replace("limit: 10", "limit: 20"))
    await run("push", file, "--write")
    expect(await readFile(file, "utf8")).toBe(
      first.replace("limit: 10", "limit: 20").replace("version: 1", "version: 2"),
    )
    expect((await readdir(folder)).filter((name) => name.endsWith(".tmp"))).toEqual([])
    expect((await runWith({ stdin: RULES }, "push", "-", "--write")).err).toContain("--write needs a file")
  })
})

describe("diff", () => {
  it("ends with 0 if file and table contain the same rules", async () => {
    await run("push", file)
    expect(await run("diff", file)).toEqual({
      code: 0,
      out: "checkout: the same; version 1 in the table, none in the file\n",
      err: "",
    })
    expect(await json("diff", file)).toMatchObject({ ok: true, services: [{ same: true, tableVersion: 1 }] })
  })

  it("compares calendar periods, and the spellings of an anchor are equal", async () => {
    const write = (window: string) =>
      writeFile(file, `service_id: checkout\nrules: [{ name: plan, limit: 5, ${window} }]\n`)
    await write('per: month, time_zone: Europe/Berlin, anchor: "07"')
    await run("push", file)
    await write("per: month, time_zone: Europe/Berlin, anchor: 7")
    expect(await json("diff", file)).toMatchObject({ ok: true, services: [{ same: true }] })
    await write("window: 1 day")
    expect((await run("diff", file)).out).toContain(`
  ~ plan
      per: "month" -> (not given)
      time_zone: "Europe/Berlin" -> (not given)
      anchor: 7 -> (not given)
      window: (not given) -> "1 day"
`)
  })

  it("prints added, removed and changed rules with both values, and ends with 1", async () => {
    await run("push", file)
    await writeFile(
      file,
      `version: 9
service_id: checkout
rules:
  - { name: weekly, limit: 1, window: 1 week }
  - name: per-user
    field: [user_id, ip]
    limit: 5
    window: 90s
    shadow: true
`,
    )
    expect(await run("diff", file)).toEqual({
      code: 1,
      out: `checkout: version 1 in the table, 9 in the file
  + weekly
  - daily
  ~ per-user
      field: "user_id" -> ["user_id","ip"]
      window: "1 minute" -> "90 seconds"
      shadow: (not given) -> true
`,
      err: "",
    })
    const { services } = (await json("diff", file)) as { services: unknown[] }
    expect(services).toEqual([
      {
        service: "checkout",
        same: false,
        fileVersion: 9,
        tableVersion: 1,
        added: ["weekly"],
        removed: ["daily"],
        changed: [
          {
            rule: "per-user",
            members: [
              { member: "field", before: "user_id", after: ["user_id", "ip"] },
              { member: "window", before: "1 minute", after: "90 seconds" },
              { member: "shadow", after: true },
            ],
          },
        ],
        isReordered: false,
        metadata: [],
        problems: [],
      },
    ])
  })

  it("identifies rules without a name by their default names", async () => {
    await writeFile(file, "service_id: a\nrules: [{ field: ip, limit: 5, window: 1m }]\n")
    await run("push", file)
    await writeFile(file, "service_id: a\nrules: [{ field: ip, limit: 6, window: 60s }]\n")
    expect((await run("diff", file)).out).toContain("\n  ~ ip-1m\n      limit: 5 -> 6\n")
  })

  it("shows when a rule limits requests in progress instead, but not another spelling of its hold", async () => {
    const rules = (first: string, hold: string) =>
      `service_id: a\nrules: [{ name: a, ${first} }, { name: b, concurrent: 5, hold: ${hold} }]\n`
    await writeFile(file, rules("limit: 5, window: 1m", "60s"))
    await run("push", file)
    await writeFile(file, rules("concurrent: 5", "1 minute"))
    expect((await run("diff", file)).out).toBe(
      'a: version 1 in the table, none in the file\n  ~ a\n      limit: 5 -> (not given)\n      window: "1 minute" -> (not given)\n      concurrent: (not given) -> 5\n',
    )
  })

  it("reports each changed override separately", async () => {
    const rule = (overrides: string) =>
      `service_id: a\nrules: [{ field: ip, limit: 5, window: 1m, overrides: ${overrides} }]\n`
    await writeFile(file, rule("{ 192.0.2.1: 1, 192.0.2.2: { limit: 2 }, 192.0.2.3: 3 }"))
    await run("push", file)
    await writeFile(file, rule("{ 192.0.2.1: 1, 192.0.2.2: 2, 192.0.2.3: 4, 192.0.2.4: 5 }"))
    expect((await run("diff", file)).out).toContain(
      '\n  ~ ip-1m\n      overrides["192.0.2.3"]: 3 -> 4\n      overrides["192.0.2.4"]: (not given) -> 5\n',
    )
  })

  it("reports a different order of the rules, but not of the members in a map", async () => {
    await writeFile(
      file,
      "service_id: a\nrules: [{ name: x, limit: 1, window: 1m, match: { path: /a, methods: [GET] } }, { limit: 2, window: 2m }]\n",
    )
    await run("push", file)
    await writeFile(
      file,
      "service_id: a\nrules: [{ window: 1m, limit: 1, name: x, match: { methods: [GET], path: /a } }, { limit: 2, window: 2m }]\n",
    )
    expect((await run("diff", file)).code).toBe(0)
    await writeFile(
      file,
      "service_id: a\nrules: [{ limit: 2, window: 2m }, { window: 1m, limit: 1, name: x, match: { methods: [GET], path: /a } }]\n",
    )
    const { code, out } = await run("diff", file)
    expect({ code, out }).toEqual({
      code: 1,
      out: "a: version 1 in the table, none in the file\n  ~ the order of the rules\n",
    })
  })

  it("reports a service that is not in the table, and an invalid rule in the table", async () => {
    expect((await run("diff", file)).out).toBe("checkout: not in the table\n  + per-user\n  + daily\n")
    await putWrongRule("checkout")
    await writeFile(file, "service_id: checkout\nrules: []\n")
    const { code, out } = await run("diff", file)
    expect(code).toBe(1)
    expect(out).toMatch(
      /\n {2}! invalid in the table: table ".*" service "checkout" rules\[0\]\.limit: 0 is not a limit\n$/,
    )
    await writeFile(file, "service_id: checkout\nrules: 5\n")
    expect((await run("diff", file)).err).toContain("nothing was changed")
  })
})

/** Puts an item with a rule that no command would register, as if it were written by hand. */
async function putWrongRule(service: string): Promise<void> {
  const rule = { M: { limit: { N: "0" }, window: { S: "1m" } } }
  const Item = { service_id: { S: service }, version: { N: "4" }, rules: { L: [rule] } }
  await server.client().send(new PutItemCommand({ TableName: table, Item }))
}

describe("pull", () => {
  it("prints a service's rules as YAML that push accepts as unchanged", async () => {
    await run("push", file)
    const { code, out, err } = await run("pull", "--service", "checkout")
    expect({ code, err }).toEqual({ code: 0, err: "" })
    expect(out).toBe(`service_id: checkout
version: 1
rules:
  - name: per-user
    field: user_id
    rate: { requests_per_unit: 5, unit: minute }
  - name: daily
    rate: { requests_per_unit: 10, unit: day }
`)
    expect((await runWith({ stdin: out }, "push", "-")).out).toBe("checkout: unchanged, version 1\n")
  })

  it("prints all services in order, as JSON with --json or if the file name ends in .json", async () => {
    await writeFile(file, `${RULES}---\nservice_id: b\nrules: []\n---\nservice_id: a\nrules: []\n`)
    await run("push", file)
    const { out } = await run("pull")
    expect(out.match(/^service_id: .*$/gm)).toEqual([
      "service_id: a",
      "service_id: b",
      "service_id: checkout",
    ])
    expect((await runWith({ stdin: out }, "diff", "-")).code).toBe(0)
    const printed = await run("pull", "--json")
    expect(JSON.parse(printed.out)).toHaveLength(3)
    expect((await runWith({ stdin: printed.out }, "diff", "-")).code).toBe(0)
    const path = join(folder, "all.json")
    expect(await run("pull", "-o", path)).toEqual({ code: 0, out: `${path}: 3 services, 2 rules\n`, err: "" })
    expect(await readFile(path, "utf8")).toBe(printed.out)
    expect((await run("diff", path)).code).toBe(0)
    expect(await json("pull", "-s", "a", "-o", path)).toEqual({
      ok: true,
      output: path,
      services: 1,
      rules: 0,
    })
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ service_id: "a", version: 1, rules: [] })
  })

  it("keeps strings unchanged and escapes their invisible characters", async () => {
    const message = "\u001b[31m\u202e\u009b \u{e0001}: \"x\" 'y' #z\nno: really\tyes"
    await writeFile(
      file,
      JSON.stringify({
        service_id: "7",
        rules: [
          {
            limit: 1,
            window: 1,
            allow: ["yes", "1", "null", "plain\u202etext", message, "x".repeat(200)],
            field: "ip2",
            request_rejection_message: message,
          },
        ],
      }),
    )
    await run("push", file)
    for (const flags of [[], ["--json"]]) {
      const { out } = await run("pull", ...flags)
      expect(out.replaceAll("\n", "")).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
      expect((await runWith({ stdin: out }, "diff", "-")).out).toMatch(/^7: the same/)
    }
  })

  it("reports services that are not in the table", async () => {
    expect(await run("pull")).toEqual({
      code: 1,
      out: "",
      err: `table ${table} does not have any rules\n`,
    })
    const path = join(folder, "none.yaml")
    const { code, out, err } = await run("pull", "-s", "nobody", "-o", path)
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(err).toBe(
      `nobody: no rules in table ${table}; \`sluice rules list --table ${table}\` lists the services that have rules\n`,
    )
    await expect(readFile(path)).rejects.toThrow("ENOENT")
  })

  it("warns of rules that could not be read, because a push would remove them", async () => {
    await putWrongRule("broken")
    for (const flags of [[], ["--json"]]) {
      const { code, out, err } = await run("pull", ...flags)
      expect(code).toBe(1)
      expect(out).toMatch(/service_id"?: "?broken/)
      expect(err).toMatch(
        /^broken: some rules in the table are invalid .* would remove them:\n {2}table .* rules\[0\]\.limit: 0 is not a limit\n$/,
      )
    }
  })

  it("reports a file that cannot be written", async () => {
    await run("push", file)
    const { code, err } = await run("pull", "-o", join(folder, "no", "where.yaml"))
    expect(code).toBe(2)
    expect(err).toMatch(/^error: .*where\.yaml cannot be written: ENOENT/)
  })
})

describe("list", () => {
  it("prints one line for each service", async () => {
    await writeFile(file, `${RULES}---\nservice_id: b\nrules: []\n`)
    await run("push", file)
    expect(await run("list")).toEqual({
      code: 0,
      out: "service   version  rules  problems\nb         1        0      0\ncheckout  1        2      0\n",
      err: "",
    })
    await putWrongRule("b")
    const { code, out, err } = await run("list")
    expect({ code, out }).toMatchObject({
      code: 1,
      out: expect.stringContaining("\nb         4        0      1\n"),
    })
    expect(err).toMatch(/rules\[0\]\.limit: 0 is not a limit\n1 problem: invalid rules are not in force\n$/)
    expect(await json("list")).toEqual({
      ok: false,
      services: [
        {
          service: "b",
          version: 4,
          rules: 0,
          problems: [expect.objectContaining({ message: "0 is not a limit" })],
        },
        { service: "checkout", version: 1, rules: 2, problems: [] },
      ],
    })
  })

  it("reports that the table is empty", async () => {
    expect(await run("list")).toEqual({
      code: 0,
      out: `table ${table} does not have any rules\n`,
      err: "",
    })
  })
})

describe("remove", () => {
  it("removes only the given version", async () => {
    await run("push", file)
    expect(await run("remove", "checkout", "--if-version", "2")).toEqual({
      code: 1,
      out: "",
      err: "checkout: not removed: --if-version is 2, but the table has version 1\n",
    })
    expect(await json("remove", "checkout", "--if-version", "2")).toMatchObject({
      ok: false,
      tableVersion: 1,
    })
    expect((await run("remove", "checkout", "--if-version", "1")).out).toBe(
      `checkout: removed from table ${table}\n`,
    )
    expect(await registry().get("checkout")).toBeUndefined()
  })

  it("removes any version with --force, and succeeds if there are no rules", async () => {
    await run("push", file)
    expect(await json("remove", "checkout", "--force")).toEqual({
      ok: true,
      service: "checkout",
      removed: true,
    })
    expect((await run("remove", "checkout", "--force")).out).toBe(
      `checkout: has no rules in table ${table}\n`,
    )
  })
})

describe("a table that cannot be reached", () => {
  it("makes every command end with 3 and print one line without a stack", async () => {
    table = "nowhere"
    for (const argv of [
      ["list"],
      ["pull"],
      ["pull", "-s", "a"],
      ["diff", file],
      ["push", file],
      ["remove", "a", "--force"],
    ]) {
      const { code, out, err } = await run(...argv)
      expect({ argv, code, out }).toEqual({ argv, code: 3, out: "" })
      expect(err).toMatch(/^error: .*"nowhere".*\n$/)
      expect(err).not.toContain("    at ")
    }
    const refused = await sluice([
      "rules",
      "list",
      "--table",
      "rules",
      "--endpoint",
      "http://127.0.0.1:1",
      "--json",
    ])
    expect(refused.code).toBe(3)
    expect(JSON.parse(refused.out)).toEqual({
      ok: false,
      error: { code: "SLUICE_RULE_SOURCE", message: expect.stringContaining("ECONNREFUSED") },
    })
  })
})

describe("a connection that stops responding", () => {
  it("times out early enough for another attempt, without a message", async () => {
    const proxy = await startFaultProxy(server)
    const warn = vi.spyOn(console, "warn").mockReturnValue()
    try {
      await run("push", file)
      proxy.fault = () => (proxy.calls.length === 1 ? "hang" : undefined)
      const argv = ["rules", "list", "--table", table, "--endpoint", proxy.endpoint]
      expect(await sluice(argv)).toMatchObject({ code: 0, out: expect.stringContaining("checkout"), err: "" })
      expect(warn.mock.calls).toEqual([])
    } finally {
      warn.mockRestore()
      await proxy.stop()
    }
  })
})

describe("an interrupted or concurrent push", () => {
  const several = ["a", "b", "c"].map((service) => `service_id: ${service}\nrules: []\n`).join("---\n")

  it("prints which services were registered before the table could no longer be written", async () => {
    const proxy = await startFaultProxy(server)
    try {
      proxy.fault = (action) =>
        action === "UpdateItem" && proxy.calls.filter((call) => call === action).length > 1
          ? "deny"
          : undefined
      await writeFile(file, several)
      const argv = ["rules", "push", file, "--table", table, "--endpoint", proxy.endpoint, "--write"]
      const { code, out, err } = await sluice(argv)
      expect({ code, out }).toEqual({ code: 3, out: "a: registered, version 1\nc: not tried\n" })
      expect(err).toMatch(/^error: .*service "b".*\n$/)
      expect(await readFile(file, "utf8")).toBe(`version: 1\n${several}`)
      const { services } = JSON.parse((await sluice([...argv, "--json"])).out)
      expect(services.map(({ state }: { state: string }) => state)).toEqual([
        "unchanged",
        "failed",
        "not tried",
      ])
      expect(services[1].error).toEqual({ code: "SLUICE_RULE_SOURCE", message: expect.any(String) })
    } finally {
      await proxy.stop()
    }
  })

  it("succeeds for only one of several pushes, and the other pushes print the stored rules", async () => {
    const files = await Promise.all(
      [1, 2, 3, 4, 5, 6].map(async (limit) => {
        const path = join(folder, `${table}-${limit}.yaml`)
        await writeFile(
          path,
          `service_id: a\nrules: [{ limit: ${limit}, window: 1m }]\n---\nservice_id: own-${limit}\nrules: []\n`,
        )
        return path
      }),
    )
    const ran = await Promise.all(files.map((path) => run("push", path)))
    expect(ran.map(({ code }) => code).sort()).toEqual([0, 1, 1, 1, 1, 1])
    for (const { code, out, err } of ran) {
      if (code === 0) continue
      expect(err).toMatch(
        /^a: not registered: .* but the table has version 1\n.*\n {2}~ service-1m\n {6}limit: \d -> \d\n/,
      )
      expect(out).toMatch(/^own-\d: not tried\n/)
    }
  })
})

describe("region and credentials", () => {
  /** The access keys and regions of signed calls, which a server records while it refuses all calls. */
  const signatures: string[] = []
  const refuse: RequestListener = (request, response) => {
    const [, key, region] =
      /Credential=([^/]+)\/\d+\/([^/]+)\//.exec(request.headers.authorization ?? "") ?? []
    signatures.push(`${key} ${region}`)
    response.writeHead(400, { "content-type": "application/x-amz-json-1.0" })
    response.end('{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}')
  }
  const settings = {
    AWS_ACCESS_KEY_ID: "somebody",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_REGION: "eu-north-1",
  }
  let refusing: HttpServer
  let endpoint: string

  beforeAll(async () => {
    refusing = await startHttpServer(refuse)
    endpoint = refusing.url
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await refusing.close()
  })

  async function signedBy(
    env: Readonly<Record<string, string>>,
    ...flags: string[]
  ): Promise<string | undefined> {
    vi.unstubAllEnvs()
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
    const { code, err } = await sluice(["rules", "list", "--table", "rules", ...flags], { env })
    expect({ code, err }).toEqual({ code: 3, err: expect.stringMatching(/^error: .*"rules"/) })
    return signatures.at(-1)
  }

  it("are read as in every AWS tool, and --region takes precedence", async () => {
    const elsewhere = { ...settings, AWS_ENDPOINT_URL_DYNAMODB: endpoint }
    expect(await signedBy(elsewhere)).toBe("somebody eu-north-1")
    expect(await signedBy(elsewhere, "--region", "eu-west-9")).toBe("somebody eu-west-9")
    expect(await signedBy(settings, "--endpoint", endpoint)).toBe("somebody eu-north-1")
  })

  it("are replaced with dummy values for a local server if none are set", async () => {
    expect(await signedBy({}, "--endpoint", endpoint)).toBe("local local")
    expect(await signedBy({}, "--endpoint", endpoint, "--region", "eu-west-9")).toBe("local eu-west-9")
  })
})
