import { execFile } from "node:child_process"
import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Cluster } from "ioredis"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { run } from "../../packages/cli/src/run.ts"
import { forked, killInstances } from "../redis/instances.ts"
import { freePort } from "../servers/free-port.ts"
import { startCluster } from "../servers/redis-cluster.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { useFolder } from "./folder.ts"
import { type Ran, sluice } from "./in-process.ts"
import type { AppSettings } from "./limited-app.ts"

const SLUICE = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url))
const APP = fileURLToPath(new URL("./limited-app.ts", import.meta.url))
const RULES = [
  { name: "per-user", field: "user", limit: 3, window: "1 day", algorithm: "fixed-window" },
  { name: "monthly", field: "user", limit: 1_000, per: "month" },
  { name: "all", field: "service", limit: 1_000, window: "1 day" },
  { name: "trial", field: "user", limit: 1_000, window: "1 day", allow: ["root"], shadow: true },
  { name: "pair", field: ["user", "ip"], limit: 1_000, window: "1 day", match: { path: "/pair" } },
  { name: "staff", field: "user", limit: 1_000, window: "1 day", allow: ["root"], match: { path: "/staff" } },
] as const

const pathOf = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))
const tlsPort = await freePort()
const { server, client } = await redisForTests({
  args: [
    ...["--tls-port", `${tlsPort}`, "--tls-auth-clients", "no", "--tls-ca-cert-file", pathOf("ca.pem")],
    ...["--tls-cert-file", pathOf("server.pem"), "--tls-key-file", pathOf("server.key")],
  ],
})
const { file } = useFolder()
const rules = file("rules.json", JSON.stringify({ service_id: "shop", rules: RULES }))
beforeAll(async () => {
  await client.acl("SETUSER", "ops", "on", ">s3cr%t", "~*", "+@all")
})
afterAll(killInstances)

/** Starts an app. Returns a function that sends a request of a user, and returns whether the request was admitted. */
async function startApp(settings: Partial<AppSettings> = {}) {
  const app: AppSettings = { port: server.port, service: "shop", rules: RULES, ...settings }
  const [port] = await once(forked(APP, app, {}), "message")
  return async (user: string): Promise<boolean> => {
    const { status } = await fetch(`http://127.0.0.1:${port}/`, { headers: { "x-user": user } })
    return status === 200
  }
}

/** Runs a command for clients of the service "shop" in the Redis at `REDIS_URL`. */
function inRedis([command = "", ...argv]: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  const REDIS_URL = `redis://ops:s3cr%25t@127.0.0.1:${server.port}`
  const place = ["--rules", rules, "--service", "shop"]
  return sluice(["clients", command, ...place, ...argv], { env: { REDIS_URL, ...env } })
}

const done = (text: string): Ran => ({ code: 0, out: `${text}\n`, err: "" })

describe("sluice clients with Redis", () => {
  it("shows why an app refuses a client, and resets, blocks and unblocks the client there", async () => {
    const send = await startApp()
    for (let i = 0; i < 3; i++) expect(await send("ada")).toBe(true)
    expect(await send("ada")).toBe(false)
    const shown = await inRedis(["show", "per-user", "ada"])
    expect([shown.code, shown.err]).toEqual([0, ""])
    expect(shown.out).toMatch(
      /^refused: the limit is used up, for \d+ s more\n0 of 3 left, all of them again in \d+ s\nkey: sl2:\{..\}[\w-]{16}ada\n$/,
    )
    const key = /key: (.*)/.exec(shown.out)?.[1] ?? ""
    expect(await client.exists(key)).toBe(1)
    expect(await inRedis(["reset", "per-user", "ada"])).toEqual(done("reset under rule per-user of shop"))
    expect(await client.exists(key)).toBe(0)
    expect(await inRedis(["block", "per-user", "ada", "--for", "1 hour"])).toEqual(
      done("blocked under rule per-user of shop for at least 1 hour"),
    )
    expect((await inRedis(["show", "per-user", "ada"])).out).toMatch(
      /^refused: blocked by an operator, for 3600 s more\n0 of 3 left, all of them again in 3600 s\nkey: \S+ \(no counter in Redis\)\n$/,
    )
    await until("the app applies the block", async () => !(await send("ada")))
    expect(await send("eve")).toBe(true)
    expect(await inRedis(["unblock", "per-user", "ada"])).toEqual(
      done("unblocked under rule per-user of shop"),
    )
    expect((await inRedis(["show", "per-user", "ada"])).out).toMatch(/^admitted\n/)
  })

  it("says that Redis has no counter of an unknown client, or of a rule with another window", async () => {
    const nobody = await inRedis(["show", "per-user", "nobody"])
    expect(nobody.out).toMatch(/^admitted\n3 of 3 left\nkey: sl2:\S+nobody \(no counter in Redis\)\n$/)
    const send = await startApp({ service: "other", rules: [RULES[0]] })
    await send("ada")
    const inFile = (window: string) =>
      JSON.stringify({ service_id: "other", rules: [{ ...RULES[0], window }] })
    const shown = async (window: string) => {
      const argv = ["per-user", "ada", "--json", "--service", "other"]
      return JSON.parse((await inRedis(["show", ...argv, "--rules", file("other.json", inFile(window))])).out)
    }
    expect(await shown("1 day")).toMatchObject({ ok: true, remaining: "2", counted: true, partition: "ada" })
    expect(await shown("2 days")).toMatchObject({ ok: true, remaining: "3", counted: false })
  })

  it("grants a client units of a month, which the app admits", async () => {
    const send = await startApp()
    await send("bea")
    const grant = (...argv: string[]) => inRedis(["grant", ...argv])
    expect(await grant("monthly", "bea", "--units", "500")).toEqual(
      done("granted 500 units under rule monthly of shop"),
    )
    const shown = await inRedis(["show", "monthly", "bea"])
    expect(shown.out).toMatch(
      /^admitted\n1499 of 1500 left \(500 granted until the period ends\), all of them again in /,
    )
    const json = await grant("monthly", "bea", "--units", "-200", "--json")
    expect(JSON.parse(json.out)).toEqual({
      ok: true,
      service: "shop",
      rule: "monthly",
      done: "granted",
      units: -200,
    })
    expect(JSON.parse((await inRedis(["show", "monthly", "bea", "--json"])).out)).toMatchObject({
      limit: "1300",
      granted: "300",
    })
    for (const units of ["0", "1.5", "many", "1e3", ""])
      expect(await grant("monthly", "bea", "--units", units)).toMatchObject({
        code: 2,
        err: expect.stringContaining(`--units ${units} is not a number of units`),
      })
    expect(await grant("monthly", "bea")).toMatchObject({
      code: 2,
      err: expect.stringContaining("--units is missing"),
    })
    expect(await grant("per-user", "bea", "--units", "5")).toMatchObject({
      code: 2,
      err: expect.stringContaining("is not limited by any rule with per"),
    })
  })

  // Two days on which the current period of one began later than that of the other.
  const today = new Date().getUTCDate()
  const [recent, earlier] = today < 28 ? [today, today + 1] : [28, 1]
  it.each([
    ["later", recent, earlier],
    ["earlier", earlier, recent],
  ])("grants units in a period that the app computes, and that began %s", async (name, ofApp, other) => {
    const send = await startApp({ renewsOn: ofApp })
    await send(name)
    const show = async () => {
      const { out } = await inRedis(["show", "monthly", name, "--json", "--anchor", `${ofApp}`])
      return JSON.parse(out)
    }
    expect(await inRedis(["grant", "monthly", name, "--units", "500", "--anchor", `${other}`])).toMatchObject(
      { code: 2, err: expect.stringContaining("give the client's day with --anchor") },
    )
    expect(await show()).toMatchObject({ limit: "1000", remaining: "999" })
    expect(await inRedis(["grant", "monthly", name, "--units", "500", "--anchor", `${ofApp}`])).toMatchObject(
      { code: 0 },
    )
    expect(await send(name)).toBe(true)
    const shown = await show()
    expect(shown).toMatchObject({ limit: "1500", remaining: "1498", granted: "500" })
    expect(new Date(Date.now() + Number(shown.resetAfterMs)).getUTCDate()).toBe(ofApp)
  })

  it("refuses an anchor that is none, or that nothing reads", async () => {
    for (const [rule, day] of [
      ["monthly", "32"],
      ["per-user", "3"],
    ] as const) {
      expect(await inRedis(["show", rule, "cleo", "--anchor", day])).toMatchObject({
        code: 2,
        err: expect.stringContaining("anchor"),
      })
    }
    expect(await sluice(["clients", "show", "-s", "shop", "monthly", "cleo", "--anchor", "3"])).toMatchObject(
      {
        code: 2,
        err: expect.stringContaining("--anchor is only for Redis"),
      },
    )
  })

  it("says that there was nothing to reset or to unblock", async () => {
    expect(await inRedis(["reset", "per-user", "nobody"])).toEqual(
      done("nothing was counted under rule per-user of shop"),
    )
    expect(await inRedis(["unblock", "per-user", "nobody"])).toEqual(
      done("nothing was blocked under rule per-user of shop"),
    )
    const json = await inRedis(["reset", "per-user", "nobody", "--json"])
    expect(JSON.parse(json.out)).toEqual({ ok: true, service: "shop", rule: "per-user" })
  })

  it("says nothing of that if its Redis user may not ask", async () => {
    await client.acl("SETUSER", "blind", "on", ">any", "~*", "+@all", "-exists", "-info")
    const env = { REDIS_URL: `redis://blind:any@127.0.0.1:${server.port}` }
    expect((await inRedis(["show", "per-user", "nobody"], env)).out).toMatch(/\nkey: sl2:\S+nobody\n$/)
    expect(await inRedis(["reset", "per-user", "nobody"], env)).toEqual(
      done("reset under rule per-user of shop"),
    )
  })

  it("changes only the rule that is named, also if it counts by several fields or the whole service", async () => {
    expect(await inRedis(["block", "all", "--for", "1m"])).toEqual(
      done("blocked every client under rule all of shop for at least 1m"),
    )
    expect(await inRedis(["unblock", "all"])).toEqual(done("unblocked every client under rule all of shop"))
    await inRedis(["block", "pair", "ada", "192.0.2.7", "--for", "1 hour"])
    expect((await inRedis(["block", "pair", "ada", "192.0.2.7", "--for", "1m"])).out).toContain("at least 1m")
    expect((await inRedis(["show", "pair", "ada", "192.0.2.7"])).out).toMatch(
      /^refused: blocked by an operator, for \d{4} s more/,
    )
    expect((await inRedis(["show", "pair", "ada", "192.0.2.8"])).out).toMatch(/^admitted/)
    expect((await inRedis(["show", "staff", "ada"])).out).toMatch(/^admitted/)
  })

  it("shows shadow rules and allow lists, which cannot block a client", async () => {
    expect((await inRedis(["show", "trial", "ada"])).out).toContain(
      "\na shadow rule: it never refuses the client\n",
    )
    expect((await inRedis(["show", "staff", "root"])).out).toBe(
      "not counted: the rule's allow list names the client\n",
    )
    for (const argv of [["unblock"], ["block", "--for", "1m"]]) {
      expect(await inRedis([...argv, "trial", "ada"])).toMatchObject({
        code: 2,
        err: "error: rule trial is a shadow rule, so it cannot block a client\n",
      })
    }
    expect(await inRedis(["unblock", "staff", "root"])).toEqual(
      done("nothing was blocked under rule staff of shop"),
    )
    expect(await inRedis(["block", "staff", "root", "--for", "1m"])).toMatchObject({
      code: 2,
      err: "error: the client is on the allow list of rule staff, so it cannot be blocked; change the rule\n",
    })
  })

  it("finds the counters of an app with a prefix, hashed keys and a secret", async () => {
    const send = await startApp({ prefix: "app:", hashKeys: true, hashSecret: "a-long-secret" })
    for (let i = 0; i < 4; i++) await send("ada")
    const naming = ["--prefix", "app:", "--hash-keys"]
    const env = { SLUICE_HASH_SECRET: "a-long-secret" }
    const { out } = await inRedis(["show", "per-user", "ada", ...naming], env)
    expect(out).toMatch(/^refused: the limit is used up,.*\n.*\nkey: app:sl2:\{..\}[\w-]{16}#[\w-]{22}\n$/)
    const json = JSON.parse((await inRedis(["show", "per-user", "ada", ...naming, "--json"], env)).out)
    expect(json.partition).toMatch(/^#[\w-]{22}$/)
    const named = await inRedis(["show", "per-user", json.partition, "--prefix", "app:"])
    expect(named.out.split("\n")[2]).toBe(out.split("\n")[2])
    for (const [argv, others] of [
      [naming, { SLUICE_HASH_SECRET: "another" }],
      [naming.slice(2), env],
      [naming.slice(0, 2), env],
      [[...naming.slice(0, 2), "--no-hash-keys"], env],
    ] as const) {
      expect((await inRedis(["show", "per-user", "ada", ...argv], others)).out).toContain(
        "(no counter in Redis)",
      )
    }
  })

  it("shows rules that count other units, that limit concurrency, or that count by a secret", async () => {
    const others = [
      { name: "tokens", field: "user", limit: 10_000, window: "1 day", counts: "tokens" },
      { name: "running", field: "user", concurrent: 5 },
      { name: "keys", field: "header:x-api-key", limit: 7, window: "1 day" },
    ]
    const path = file("units.json", JSON.stringify({ service_id: "shop", rules: others }))
    const show = async (rule: string) => (await inRedis(["show", rule, "ada", "--rules", path])).out
    expect(await show("tokens")).toMatch(/^admitted\n10000 of 10000 left\nkey: \S+ada \(no counter/)
    expect(await show("running")).toMatch(/^admitted\n5 of 5 left\nkey: \S+ada \(no counter/)
    const limiter = createLimiter({
      ...{ service: "shop", rules: others.slice(1, 2), fields: { user: () => "ada" } },
      store: redisStore({ client }),
    })
    for (let i = 0; i < 5; i++) await limiter.decide({})
    expect(await show("running")).toMatch(
      /^refused: too many requests are in flight\n0 of 5 left, all of them again in \d+ s\n/,
    )
    await limiter.close()
    expect(await show("keys")).toMatch(/^admitted\n7 of 7 left\nkey: \S+#[\w-]{22} \(no counter/)
  })

  it("groups addresses by the prefix of the app", async () => {
    const show = async (...argv: string[]) =>
      (await inRedis(["show", "pair", "ada", "2001:db8::7", ...argv])).out
    expect(await show()).toMatch(/@3:ada13:2001:db8::\/64 /)
    expect(await show("--ipv6-prefix", "48")).toMatch(/@3:ada13:2001:db8::\/48 /)
  })

  it("reads a cluster, of which the URL is a node", async () => {
    const cluster = await startCluster({ primaries: 3 })
    onTestFinished(() => cluster.stop())
    for (const each of cluster.nodes)
      await each.command("ACL", "SETUSER", "ops", "on", ">s3cr%t", "~*", "+@all")
    const [node, other] = cluster.nodes.map(({ port }) => `redis://ops:s3cr%25t@127.0.0.1:${port}`) as [
      string,
      string,
    ]
    const clusterClient = new Cluster([cluster.nodes[0]?.port ?? 0])
    onTestFinished(() => clusterClient.disconnect())
    const store = redisStore({ client: clusterClient })
    const fields = { user: ({ user }: { readonly user: string }) => user }
    const limiter = createLimiter({
      service: "shop",
      rules: [...RULES],
      store,
      fields,
      storeTimeoutMs: 20_000,
    })
    const users = ["ada", "bob", "cyd", "dan", "eve", "fay"]
    for (const user of users) await limiter.decide({ user })
    for (const user of users) {
      const env = { REDIS_URL: user === "ada" ? `${node}, ${other}` : other }
      expect((await inRedis(["show", "per-user", user], env)).out).toMatch(/^admitted\n2 of 3 left/)
      expect(await inRedis(["reset", "per-user", user], env)).toMatchObject({ code: 0 })
      expect((await limiter.peek({ user })).checks[0]?.remaining).toBe(3)
    }
  })

  it("uses TLS for rediss://, and ends the program when it has printed", async () => {
    const argv = [SLUICE, "clients", "show", "--rules", rules, "--service", "shop", "per-user", "nobody"]
    const REDIS_URL = `rediss://127.0.0.1:${tlsPort}`
    const env = { PATH: process.env.PATH ?? "", NODE_EXTRA_CA_CERTS: pathOf("ca.pem"), REDIS_URL }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, argv, { env, timeout: 60_000 })
    expect([stdout.split("\n")[0], stderr]).toEqual(["admitted", ""])
  })
})

describe("sluice clients top with Redis", () => {
  it("lists the clients that are refused in all processes of all services, and wakes the processes", async () => {
    const board = await startRedis()
    onTestFinished(() => board.stop())
    const env = { REDIS_URL: `redis://127.0.0.1:${board.port}` }
    const top = (...argv: string[]) => sluice(["clients", "top", ...argv], { env })
    expect(await top()).toEqual({
      code: 0,
      out: "",
      err:
        "No process shares what it records in this Redis. In the app, pass shared: redisActivity({ client }) to " +
        "dashboard() or recordActivity(). If it has a prefix, give --prefix.\n",
    })
    const settings = { port: board.port, rules: RULES.slice(0, 3) }
    const apps = await Promise.all(
      ["shop", "shop", "other"].map((service) => startApp({ ...settings, service })),
    )
    for (const [at, times] of [4, 3, 5].entries()) {
      for (let i = 0; i < times; i++) await apps[at]?.("ada")
    }
    let ran: Ran | undefined
    await until("all processes have written", async () => {
      ran = await top("--rule", "per-user")
      return [/per-user .* 3 +2 /, /per-user .* 3 +4 /].every((line) => line.test(ran?.out ?? ""))
    })
    const masks = [
      [/\d\d:\d\d:\d\d/g, "12:00:00"],
      [/\d+ s\b/g, "9 s"],
      [/in \d+ (h|min)/g, "in 9 h"],
      [/[▁-█]{30}/g, "▁█▁"],
    ] as const
    const out = masks.reduce((text, [mask, by]) => text.replace(mask, by), ran?.out ?? "")
    const table = (service: string, admitted: number, refused: number, processes: string) => [
      `${service} at 12:00:00, recorded for 9 s${processes}`,
      "rule      refused, last 5 min             admitted  refused  clients",
      `per-user  ▁█▁  ${admitted}         ${refused}        1`,
      "",
      "rule      client  refused, 5–10 min  reason         last     retry",
      `per-user  ada     ${refused}                  limit used up  9 s ago  in 9 h`,
      "",
    ]
    expect([ran?.code, out, ran?.err]).toEqual([
      0,
      [...table("other", 3, 2, ""), ...table("shop", 3, 4, " by 2 processes")].join("\n"),
      "",
    ])
    const json = JSON.parse((await top("--service", "shop", "--json")).out)
    expect(json).toMatchObject({
      ...{ ok: true, service: "shop", atMs: expect.stringMatching(/^\d+$/) },
      rules: [{ rule: "per-user", shadow: false }, {}, {}],
      refused: [{ rule: "per-user", key: "ada", refusals: 4, error: 0, lastMs: expect.any(String) }],
      refusals: [{ rule: "per-user", key: "ada" }, {}, {}, {}],
    })
    const missing = 'No process shares what it records of service "shp", but of "other", "shop".'
    expect(await top("--service", "shp")).toMatchObject({ code: 0, err: `${missing}\n` })
  })

  it("keeps the list while Redis is away, and draws it again afterwards", async () => {
    const board = await startRedis()
    onTestFinished(() => board.stop())
    const listeners: (() => void)[] = []
    let out = ""
    let err = ""
    const code = run(["clients", "top", "--watch", "--redis", `redis://127.0.0.1:${board.port}`], {
      stdin: (async function* () {})(),
      env: {},
      stdout: {
        ...{ isTTY: true, columns: 80, rows: 10 },
        write(text) {
          out += text
        },
      },
      stderr: {
        write(text) {
          err += text
        },
      },
      once: (_event, listener) => listeners.push(listener),
    })
    const send = await startApp({ port: board.port })
    for (let i = 0; i < 4; i++) await send("ada")
    await until("the list is drawn", () => out.includes("ada"))
    await board.kill()
    await until("the list is stale", () => /stale since \d\d:\d\d:\d\d: Redis/.test(out))
    await board.start()
    out = ""
    await until(
      "the list is drawn again",
      () => /shop at .*ada/s.test(out) && !out.split("\u001b[H").at(-1)?.includes("stale"),
    )
    for (const listener of listeners) listener()
    expect([await code, err]).toEqual([0, ""])
  })

  it("ends soon after Ctrl+C while it waits for a frozen Redis", async () => {
    const board = await startRedis()
    onTestFinished(() => board.stop())
    board.freeze()
    const listeners: (() => void)[] = []
    const code = run(["clients", "top", "--watch", "--redis", `redis://127.0.0.1:${board.port}`], {
      stdin: (async function* () {})(),
      env: {},
      stdout: { write() {} },
      stderr: { write() {} },
      once: (_event, listener) => listeners.push(listener),
    })
    await sleep(500)
    const startMs = performance.now()
    for (const listener of listeners) listener()
    expect(await code).toBe(0)
    // ioredis waits two seconds for the server to close the connection. A connection may take five seconds.
    expect(performance.now() - startMs).toBeLessThan(3_500)
  })

  it("asks the decision service if there is no Redis, or if the service is configured", async () => {
    const REDIS_URL = "redis://127.0.0.1:1"
    const top = async (env: Record<string, string>, ...argv: string[]) => {
      const { code, err } = await sluice(["clients", "top", ...argv], { env })
      return [code, err]
    }
    const service = [3, expect.stringContaining("The decision service at")]
    const url = "http://127.0.0.1:1"
    expect(await top({ REDIS_URL, SLUICE_URL: url }, "--service", "shop")).toEqual(service)
    expect(await top({ REDIS_URL }, "--service", "shop", "--url", url)).toEqual(service)
    expect(await top({ REDIS_URL }, "--service", "shop")).toEqual([3, expect.stringContaining("Redis at")])
    expect(await top({ SLUICE_URL: url }, "--redis", REDIS_URL)).toEqual([
      3,
      expect.stringContaining("Redis at"),
    ])
    expect(await top({})).toEqual([
      2,
      expect.stringContaining("--service is missing: the decision service lists"),
    ])
    expect(await top({}, "--service", "shop", "--prefix", "x")).toEqual([
      2,
      expect.stringContaining("give --redis, too"),
    ])
  })
})

describe("a mistake in a sluice clients command with Redis", () => {
  it.each([
    [["show", "per-usr", "ada"], 2, 'no rule "per-usr" in '],
    [["show", "per-user"], 2, '0 values, but rule "per-user" counts by user'],
    [["show", "pair", "ada", "nowhere"], 2, '"nowhere" is not an IP address'],
    [["block", "pair", "ada", "192.0.2.0/24", "--for", "1h"], 2, '"192.0.2.0/24" is not the network of one'],
    [["show", "--service", "shp", "per-user", "ada"], 2, 'has no rules for service "shp"; it has "shop"'],
    [["show", "--rules", "missing.yaml", "per-user", "ada"], 2, "missing.yaml does not exist"],
    [
      ["show", "--url", "http://127.0.0.1:1", "per-user", "ada"],
      2,
      "'--rules <file>' cannot be used with option '--url",
    ],
    [
      ["block", "per-user", "ada", "--for", "60"],
      2,
      'error: --for 60 has no unit: give one, such as "1 hour" or 15m\n',
    ],
    [["block", "per-user", "ada", "--for", "soon"], 2, '"soon" is not a duration'],
    [
      ["show", "--redis", "localhost:6379", "per-user", "ada"],
      2,
      "--redis is not a valid URL of Redis: give one such as redis://",
    ],
    [["show", "--redis", "redis://:s3cr%t@localhost", "per-user", "ada"], 2, "write %25 for each %"],
    [["show", "--redis", "redis://localhost/zero", "per-user", "ada"], 2, "--redis is not a valid URL"],
  ])("%j is explained", async (argv, code, says) => {
    const { out, ...ran } = await inRedis(argv)
    expect([ran.code, out, ran.err]).toEqual([code, "", expect.stringContaining(says)])
    expect(ran.err).not.toContain("s3cr")
  })

  it("is explained if there is no Redis, or if Redis is given without rules", async () => {
    const argv = ["clients", "show", "--service", "shop", "per-user", "ada"]
    expect(await sluice([...argv, "--rules", rules])).toMatchObject({
      code: 2,
      err: "error: --rules needs the Redis of the app: set REDIS_URL, for example to redis://localhost:6379/0\n",
    })
    expect(await sluice(argv, { env: { REDIS_URL: "redis://127.0.0.1:1" } })).toMatchObject({
      code: 2,
      err: expect.stringContaining("--rules is missing: give the rules file of the app"),
    })
    for (const more of [
      ["--redis", "redis://localhost"],
      ["--prefix", "x"],
      ["--hash-keys"],
      ["--ipv6-prefix", "48"],
    ]) {
      expect(await sluice([...argv, ...more])).toMatchObject({
        code: 2,
        err: `error: ${more[0]} is only for Redis: give --rules with the rules file of the app, too\n`,
      })
    }
  })

  it("is explained if the service has no rules", async () => {
    const none = file("none.yaml", "service_id: shop\nrules: []\n")
    expect((await inRedis(["show", "--rules", none, "per-user", "ada"])).err).toContain(
      `has no rule "per-user" in ${none}: it has no rules.`,
    )
  })

  it("is explained with its place if a rule is invalid", async () => {
    const wrong = file(
      "wrong.yaml",
      "service_id: shop\nrules:\n  - { name: a, limit: 5, window: 5 minuts }\n",
    )
    expect(await inRedis(["show", "--rules", wrong, "a"])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/wrong\.yaml.*line 3, column \d+.*"5 minuts" is not a window/),
    })
  })
})

// Concurrent, because the tests mostly wait for timeouts.
describe.concurrent("a Redis that cannot be used", () => {
  const show = (url: string) => inRedis(["show", "per-user", "ada"], { REDIS_URL: url })

  it.each([
    ["nobody listens", "redis://127.0.0.1:1", "connect ECONNREFUSED 127.0.0.1:1"],
    ["the password is wrong", `redis://ops:s3cret@127.0.0.1:${server.port}`, "WRONGPASS"],
    ["its certificate is not trusted", `rediss://127.0.0.1:${tlsPort}`, "certificate"],
    ["the database does not exist", `redis://127.0.0.1:${server.port}/99`, "out of range"],
    ["the server has no TLS", `rediss://127.0.0.1:${server.port}`, "Redis at 127.0.0.1"],
    ["no node of a cluster listens", "redis://127.0.0.1:1,redis://127.0.0.1:2", "Connection is closed"],
  ])("is reported with the reason if %s", async (_why, url, says) => {
    const { code, out, err } = await show(url)
    expect([code, out, err]).toEqual([3, "", expect.stringContaining(says)])
    expect(err).toMatch(
      /^error: Redis at 127\.0\.0\.1:\d+ cannot be used: .*\. Check REDIS_URL or --redis, then run the command again\.\n$/,
    )
    expect(err).not.toContain("s3cret")
  })

  it("is reported within ten seconds if it is frozen", async ({ onTestFinished }) => {
    const frozen = await startRedis()
    onTestFinished(() => frozen.stop())
    frozen.freeze()
    const startMs = performance.now()
    const { code, err } = await show(`redis://127.0.0.1:${frozen.port}`)
    expect([code, err]).toEqual([
      3,
      expect.stringContaining(`Redis at 127.0.0.1:${frozen.port} cannot be used: `),
    ])
    expect(performance.now() - startMs).toBeLessThan(10_000)
  })

  it("is reported if its user has too few permissions", async () => {
    await client.acl("SETUSER", "guest", "on", "nopass", "~*", "+info", "+ping")
    const { code, err } = await show(`redis://guest:any@127.0.0.1:${server.port}`)
    expect([code, err]).toEqual([3, expect.stringContaining("NOPERM")])
  })

  it("is reported if it is a replica", async ({ onTestFinished }) => {
    const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", `${server.port}`] })
    onTestFinished(() => replica.stop())
    const REDIS_URL = `redis://127.0.0.1:${replica.port}`
    const { code, err } = await inRedis(["block", "per-user", "ada", "--for", "1m"], { REDIS_URL })
    expect([code, err]).toEqual([3, expect.stringContaining("You can't write against a read only replica")])
  })
})
