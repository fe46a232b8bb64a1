import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it, vi } from "vitest"
import { createCommand } from "./command.ts"
import { readSettings, SettingsError, unknownVariables } from "./read-settings.ts"
import type { Settings } from "./settings-table.ts"
import { isRegistrationOpen, shownSettings } from "./shown-settings.ts"

/** commander reads the variables of the process. */
function settings(line: string, env: Readonly<Record<string, string>> = {}): Settings {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  const command = createCommand(
    "0",
    () => undefined,
    () => undefined,
  )
  return readSettings(command.parse(line.split(" "), { from: "user" }), process.env)
}

function problems(line: string, env: Readonly<Record<string, string>> = {}): readonly string[] {
  try {
    settings(line, env)
  } catch (error) {
    if (error instanceof SettingsError) return error.problems
    throw error
  }
  return []
}

afterEach(() => {
  vi.unstubAllEnvs()
})

describe("settings", () => {
  it("have defaults that suit one process on one machine", () => {
    expect(settings("--rules rules.yaml")).toEqual({
      grpc: { host: "127.0.0.1", port: 50_051 },
      http: { host: "127.0.0.1", port: 8_080 },
      operations: { host: "127.0.0.1", port: 8_081 },
      trustedProxies: ["loopback"],
      rules: "rules.yaml",
      allowInvalidRules: false,
      createTable: false,
      pollMs: 30_000,
      redisCluster: false,
      lease: false,
      storeTimeoutMs: 50,
      onStoreFailure: "local",
      instances: 1,
      reservationMs: 600_000,
      unknownServices: "forward",
      activity: false,
      dashboard: "off",
      headers: "draft-11",
      maxMessageBytes: 131_072,
      maxBatchBytes: 4_194_304,
      maxUnfinishedBytes: 67_108_864,
      maxInFlight: 1_000,
      maxConnections: 10_000,
      maxConnectionsPerPeer: 2_500,
      arrivalMs: 10_000,
      idleMs: 300_000,
      maxRequests: 10_000,
      plainCalls: true,
      drainPauseMs: 0,
      drainMs: 20_000,
      logLevel: "info",
    })
  })

  it("close registration and delay the shutdown if other machines can reach the service", () => {
    const read = (line: string) => {
      const found = settings(`--rules r ${line}`)
      return [isRegistrationOpen(found), found.drainPauseMs]
    }
    expect(read("--grpc 0.0.0.0:1")).toEqual([false, 5_000])
    expect(read("--http 0.0.0.0:1")).toEqual([false, 5_000])
    expect(read("--operations [::]:1")).toEqual([true, 5_000])
    expect(read("--http 0.0.0.0:1 --drain-pause 0")).toEqual([false, 0])
    // A name that only begins like a loopback name is not a loopback name.
    expect(read("--http 127.example.com:1")).toEqual([false, 5_000])
    expect(read("--http [::1]:1 --grpc localhost:1")).toEqual([true, 0])
  })

  it("record activity with --activity, or for the dashboard", () => {
    const read = (line: string, env = {}) => settings(`--rules r${line}`, env).activity
    expect([read(" --activity"), read(" --activity=false"), read(" --dashboard off")]).toEqual([
      true,
      false,
      false,
    ])
    expect([read(" --dashboard local"), read(" --dashboard open")]).toEqual([true, true])
    expect(read("", { SLUICE_ACTIVITY: "true" })).toBe(true)
    expect(read("", { SLUICE_ACTIVITY: "false", SLUICE_DASHBOARD: "open" })).toBe(true)
    expect(problems("--rules r", { SLUICE_ACTIVITY: "yes please", SLUICE_DASHBOARD: "everybody" })).toEqual([
      expect.stringContaining("SLUICE_ACTIVITY"),
      expect.stringMatching(/SLUICE_DASHBOARD.*off, local/),
    ])
  })

  it("can disable plain calls", () => {
    expect(settings("--rules r --plain-calls off").plainCalls).toBe(false)
  })

  it("can specify a table with all its options, and treat an empty variable as absent", () => {
    const env = {
      SLUICE_TABLE: "rules",
      SLUICE_RULES: "",
      SLUICE_DYNAMODB_REGION: "eu-central-1",
      SLUICE_CREATE_TABLE: "true",
      SLUICE_POLL: "2m",
      REDIS_URL: "rediss://redis:6380",
      SLUICE_REDIS_PREFIX: "shop:",
      SLUICE_TLS_CERT: "",
    }
    expect(settings("--headers none --endpoint http://localhost:8000", env)).toMatchObject({
      table: "rules",
      rules: undefined,
      region: "eu-central-1",
      endpoint: "http://localhost:8000",
      createTable: true,
      pollMs: 120_000,
      redis: ["rediss://redis:6380"],
      redisCluster: false,
      redisPrefix: "shop:",
      headers: false,
      tlsCert: undefined,
    })
    expect(settings("--create-table").createTable).toBe(true)
  })

  it("can specify the Redis of other data centers, and enable leases for large limits", () => {
    const env = {
      REDIS_URL: "redis://:secret@us:6379",
      SLUICE_MIRRORS: '{"eu":"redis://:secret@eu:6379","ap":"rediss://ap/2"}',
    }
    const read = settings("--rules r --lease", env)
    expect(read).toMatchObject({
      mirrors: { eu: ["redis://:secret@eu:6379"], ap: ["rediss://ap/2"] },
      lease: true,
      writeBackMs: undefined,
    })
    expect(shownSettings(read)).toMatchObject({
      counters: "redis",
      mirrors: { eu: "redis://***@eu:6379", ap: "rediss://ap/2" },
      lease: true,
    })
    const nodes = { ...env, SLUICE_MIRRORS: '{"eu":"redis://a:1,redis://b:1"}', SLUICE_REDIS_CLUSTER: "true" }
    expect(settings("--rules r --write-back on", nodes)).toMatchObject({
      writeBackMs: 100,
      mirrors: { eu: ["redis://a:1", "redis://b:1"] },
      lease: false,
    })
    expect(settings("--rules r --write-back 2s", { REDIS_URL: "redis://us:6379" }).writeBackMs).toBe(2_000)
  })

  it("treat an empty object of tokens like missing tokens", () => {
    expect(shownSettings(settings("--rules r", { SLUICE_TOKENS: "{}" }))).toMatchObject({
      registration: "open, because only this machine can connect",
    })
  })

  it("read secrets from the files that environment variables specify", () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-settings-"))
    const tokens = join(folder, "tokens.json")
    const decideTokens = join(folder, "decide-tokens.json")
    const url = join(folder, "url")
    writeFileSync(decideTokens, '{"1":"fedcba9876543210"}')
    writeFileSync(tokens, '{"*":"0123456789abcdef"}\n')
    writeFileSync(url, "redis://:secret@redis:6379\n")
    const read = settings("--rules r", {
      SLUICE_TOKENS_FILE: tokens,
      SLUICE_DECIDE_TOKENS_FILE: decideTokens,
      REDIS_URL_FILE: url,
    })
    expect(read).toMatchObject({
      decideTokens: { 1: "fedcba9876543210" },
      tokens: { "*": "0123456789abcdef" },
      redis: ["redis://:secret@redis:6379"],
    })
    expect(JSON.stringify(shownSettings(read))).not.toMatch(/secret|0123456789abcdef|fedcba9876543210/)
    expect(shownSettings(read)).toMatchObject({ decisions: "with the token of 1" })
    rmSync(folder, { recursive: true })
    expect(problems("--rules r", { SLUICE_TOKENS_FILE: tokens, REDIS_URL_FILE: "" })).toEqual([
      `SLUICE_TOKENS: its value (not shown) is in ${JSON.stringify(tokens)}, which cannot be read: ENOENT; accepted: a readable file`,
      `SLUICE_DECIDE_TOKENS: its value (not shown) is in ${JSON.stringify(decideTokens)}, which cannot be read: ENOENT; accepted: a readable file`,
    ])
  })

  it.each([
    [
      "--rules r --grpc localhost",
      /^--grpc \(or SLUICE_GRPC_ADDRESS\): "localhost" is not a valid address; accepted: host:port/,
    ],
    ["--rules r --http :8080", /^--http .*":8080" is not a valid address/],
    ["--rules r --http 127.0.0.1:65536", /^--http .*is not a valid address/],
    ["--rules r --operations ::1:80", /^--operations .*is not a valid address/],
    ["--rules r --tls-cert c.pem", /^--tls-key .*is missing; TLS needs a certificate and its key$/],
    ["--rules r --tls-key k.pem", /^--tls-cert .*is missing/],
    [
      "--rules r --table rules",
      /^--table .*"rules" is given together with --rules; accepted: either --rules or --table$/,
    ],
    ["--table r --region eu-west-1", /^--table .*"r" is not a valid table name/],
    ["--rules r --region EU", /^--region .*"EU" is not a valid region/],
    [
      "--rules r --region eu-west-1",
      /^--region .*is given without a table; accepted: this setting together with --table$/,
    ],
    ["--rules r --endpoint http://a", /^--endpoint .*is given without a table/],
    [
      "--table rules --endpoint localhost:8000",
      /^--endpoint .*is not a valid URL for this setting; accepted: a URL such as/,
    ],
    ["--rules r --create-table", /^--create-table .*"true" is given without a table/],
    [
      "--rules r --poll 5s",
      /^--poll .*"5s" is given without a table; accepted: this setting together with --table$/,
    ],
    [
      "--table rules --create-table=yes",
      /^--create-table .*"yes" is not a valid choice; accepted: true, false$/,
    ],
    ["--table rules --poll 0", /^--poll .*"0" is not a valid time/],
    [
      "--rules r --redis-cluster",
      /^--redis-cluster .*is given without REDIS_URL; accepted: this setting together with REDIS_URL$/,
    ],
    [
      "--rules r --redis-prefix a",
      /^--redis-prefix .*is given without REDIS_URL; accepted: this setting together with REDIS_URL$/,
    ],
    [
      "--rules r --lease",
      /^--lease .*is given without REDIS_URL; accepted: this setting together with REDIS_URL$/,
    ],
    ["--rules r --write-back on", /^--write-back .*is given without REDIS_URL; accepted/],
    ["--rules r --write-back 100", /^--write-back .*is not a valid choice; accepted: on, off, or a time/],
    ["--rules r --redis-prefix {a}", /^--redis-prefix .*is not a valid prefix/],
    [
      "--rules r --store-timeout 50",
      /^--store-timeout .*"50" is not a valid time; accepted: a whole number with its unit/,
    ],
    [
      "--rules r --reservation-time 11m",
      /^--reservation-time .*"11m" is not a valid time; accepted: from 1s to 10m, with its unit: 30s, 2m$/,
    ],
    ["--rules r --reservation-time 999ms", /^--reservation-time .*is not a valid time/],
    ["--rules r --store-timeout 0ms", /^--store-timeout .*is not a valid time/],
    ["--rules r --drain-time 25d", /^--drain-time .*is not a valid time/],
    [
      "--rules r --drain-pause 100000m",
      /^--drain-pause .*is not a valid time; accepted: 0, or a whole number/,
    ],
    ["--rules r --on-store-failure open", /^--on-store-failure .*accepted: local, allow, deny$/],
    ["--rules r --instances 0", /^--instances .*accepted: a whole number from 1 to 1000000$/],
    ["--rules r --instances 1.5", /^--instances .*"1\.5" is not a valid number/],
    ["--rules r --plain-calls true", /^--plain-calls .*accepted: on, off$/],
    ["--rules r --unknown-services drop", /^--unknown-services .*accepted: forward, refuse$/],
    ["--rules r --headers draft-7", /^--headers .*accepted: draft-11, next, triple, legacy, none$/],
    ["--rules ", /^--rules .*"" is /],
    ["--log-level info", /^--rules .*: is missing; give a file with rules, or a table with --table$/],
    [
      "--table rules --allow-invalid-rules",
      /^--allow-invalid-rules .*"true" is given together with --table; accepted: only with --rules$/,
    ],
    [
      "--rules r --max-batch-bytes 1048576 --max-unfinished-bytes 8388607",
      /^--max-unfinished-bytes .*"8388607" is too small; accepted: at least 8388608 \(8 times the longest message\)$/,
    ],
    ["--rules r --max-message-bytes 1", /^--max-message-bytes .*from 1024 to 67108864$/],
    [
      "--rules r --trusted-proxies loopback,10.0.0.0/33",
      /^--trusted-proxies \(or SLUICE_TRUSTED_PROXIES\): .* is not a valid list: "10\.0\.0\.0\/33" is not an address; accepted: /,
    ],
    ["--rules r --trusted-proxies 2", /^--trusted-proxies .*"2" is not an address/],
    ["--rules r --trusted-proxies 0.0.0.0/0", /would let every client choose its own address/],
    ["--rules r --max-connections 0", /^--max-connections .*"0" is not a valid number/],
    ["--rules r --max-in-flight -1", /^--max-in-flight .*"-1" is not a valid number/],
    ["--rules r --max-requests 1e3", /^--max-requests .*"1e3" is not a valid number/],
    [
      "--rules r --log-level loud",
      /^--log-level .*accepted: silent, fatal, error, warn, info, debug, trace$/,
    ],
  ])("report the problem with %s exactly once", (line, expected) => {
    expect(problems(line)).toEqual([expect.stringMatching(expected)])
  })

  it.each([
    [{ SLUICE_TOKENS: "secret" }, /^SLUICE_TOKENS: its value \(not shown\) is not valid JSON; accepted/],
    [{ SLUICE_TOKENS: '["secret-secret-secret"]' }, /is not a valid object of tokens; accepted/],
    [
      { SLUICE_TOKENS: '{"1":"secret"}' },
      /is not a valid object of tokens: 1 of its 1 members are invalid; accepted/,
    ],
    [
      { SLUICE_TOKENS: '{"1":"secret-secret-secret","secret-secret-of-2":"2","":"secret"}' },
      /is not a valid object of tokens: 2 of its 3 members are/,
    ],
    // A client could never send a token with these characters.
    [{ SLUICE_TOKENS: '{"1":"secret secret secret"}' }, /is not a valid object of tokens/],
    [{ REDIS_URL: "secret:6379" }, /^REDIS_URL: its value \(not shown\) is not a valid URL for this setting/],
    [
      { REDIS_URL: "https://user:secret@redis.example" },
      /^REDIS_URL: its value \(not shown\) has the scheme https:; accepted: redis:\/\/host:6379, or rediss:\/\/ with TLS$/,
    ],
    [
      { REDIS_URL: "redis://a", SLUICE_MIRRORS: '{"eu":"http://secret"}' },
      /^SLUICE_MIRRORS: its value \(not shown\) of "eu" has the scheme http:; accepted: redis:/,
    ],
    [
      { REDIS_URL: "redis://secret:1,redis://b:1" },
      /names several servers; accepted: one server, or several with --redis-cluster$/,
    ],
    [
      { REDIS_URL: "redis://a:1,secret", SLUICE_REDIS_CLUSTER: "true" },
      /is not a valid URL for this setting/,
    ],
    [
      { REDIS_URL: "redis://secret:1/2", SLUICE_REDIS_CLUSTER: "true" },
      /names a database or parameters, which a cluster does not support/,
    ],
    [
      { REDIS_URL: "redis://secret:1/?family=6", SLUICE_REDIS_CLUSTER: "true" },
      /names a database or parameters/,
    ],
    [
      { REDIS_URL: "redis://a:1,rediss://secret:1", SLUICE_REDIS_CLUSTER: "true" },
      /differ in user, password or TLS; accepted: the same user, password and TLS for all nodes$/,
    ],
    [
      { REDIS_URL: "redis://:secret@a:1,redis://a:1", SLUICE_REDIS_CLUSTER: "true" },
      /differ in user, password or TLS/,
    ],
    [
      { REDIS_URL: "redis://:secret%@a:1" },
      /has a % in its user or password that does not start a valid escape/,
    ],
    [{ REDIS_URL: "redis://:secret@a/b" }, /names a database that is not a number; accepted: .*:6379\/0$/],
    [{ REDIS_URL: "redis://:secret@a/-1" }, /names a database that is not a number/],
    [{ REDIS_URL: "redis://:secret@a?db=1b" }, /names a database that is not a number/],
    [
      { REDIS_URL: "redis://secret%zz:b@a:1" },
      /does not start a valid escape; accepted: %25 instead of each %$/,
    ],
    [{ REDIS_URL: "redis://a", REDIS_URL_FILE: "secret" }, /is given together with REDIS_URL_FILE/],
    [
      { SLUICE_MIRRORS: '{"eu":"redis://secret"}' },
      /^SLUICE_MIRRORS: its value \(not shown\) is given without REDIS_URL; accepted/,
    ],
    [{ REDIS_URL: "redis://a", SLUICE_MIRRORS: "redis://secret" }, /^SLUICE_MIRRORS: .* is not valid JSON/],
    [{ REDIS_URL: "redis://a", SLUICE_MIRRORS: '["redis://secret"]' }, /is not a valid object of URLs; acc/],
    [{ REDIS_URL: "redis://a", SLUICE_MIRRORS: "{}" }, /is not a valid object of URLs: it has no members/],
    [
      { REDIS_URL: "redis://a", SLUICE_MIRRORS: '{"redis://secret":"eu","eu":6379}' },
      /is not a valid object of URLs: 2 of its 2 members are invalid; accepted/,
    ],
    [
      { REDIS_URL: "redis://a", SLUICE_MIRRORS: '{"eu":"secret"}' },
      /^SLUICE_MIRRORS: .*of "eu" is not a valid URL/,
    ],
    [
      { REDIS_URL: "redis://a", SLUICE_MIRRORS: '{"eu":"redis://secret/b"}' },
      /^SLUICE_MIRRORS: .* of "eu" names a database that is not a number/,
    ],
    [
      { REDIS_URL: "redis://a", SLUICE_MIRRORS: '{"eu":"redis://:secret@a:6379/0"}' },
      /^SLUICE_MIRRORS: .* of "eu" is the Redis of REDIS_URL or of another data center; accepted: a different Redis/,
    ],
    [
      { REDIS_URL: "redis://us?db=1", SLUICE_MIRRORS: '{"eu":"redis://:secret@US:6379/1"}' },
      /of "eu" is the Redis of REDIS_URL or/,
    ],
    [
      { REDIS_URL: "redis://a", SLUICE_MIRRORS: '{"eu":"redis://:secret@x","ap":"redis://x/0"}' },
      /^SLUICE_MIRRORS: .* of "ap" is the Redis of/,
    ],
    [{ SLUICE_DECIDE_TOKENS: '{"1":"secret"}' }, /^SLUICE_DECIDE_TOKENS: .*1 of its 1 members are invalid/],
    [{ SLUICE_INSTANCES: "two" }, /^SLUICE_INSTANCES \(or --instances\): "two" is not a valid number/],
  ])("report the problem with a variable without showing a secret: %o", (env, expected) => {
    const found = problems("--rules r", env)
    expect(found).toEqual([expect.stringMatching(expected)])
    expect(found[0]).not.toContain("secret")
  })

  it.each([
    ["redis://redis:6379", "redis://redis:6379"],
    ["redis://user@redis:6379/1", "redis://***@redis:6379/1"],
    ["redis://:sec,ret@redis:6379", "redis://***@redis:6379"],
    ["rediss://:secret@[::1]:6379?password=secret", "rediss://***@[::1]:6379"],
  ])("show the location of %s without its password", (url, shown) => {
    const read = settings("--rules r --grpc [::1]:1 --http 0.0.0.0:0", { REDIS_URL: url })
    expect(shownSettings(read)).toMatchObject({
      grpc: "[::1]:1",
      redis: shown,
      registration: "closed, because there are no tokens",
      decisions: "open to every caller that reaches gRPC or HTTP",
    })
  })
})

it("the settings show the DynamoDB endpoint without its password", () => {
  const read = settings("--table rules --endpoint http://user:secret@localhost:8000", {})
  expect(shownSettings(read)).toMatchObject({ endpoint: "http://***@localhost:8000/" })
})

it("the settings report unknown variables that look like settings, but not variables that Kubernetes sets", () => {
  const env = {
    SLUICE_RULE: "r",
    SLUICE_RULES: "r",
    SLUICE_TOKENS_FILE: "t",
    SLUICE_SERVICE_HOST: "10.0.0.1",
    SLUICE_HTTP_PORT: "tcp://10.0.0.1:80",
    SLUICE_PORT_80_TCP_ADDR: "10.0.0.1",
    OTHER: "1",
  }
  expect(unknownVariables(env)).toEqual(["SLUICE_RULE"])
})
