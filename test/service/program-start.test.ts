import { createServer } from "node:net"
import { afterEach, describe, expect, it } from "vitest"
import { post } from "./post.ts"
import { type Program, runProgram, runUnread, startProgram } from "./program.ts"
import { FORWARD } from "./questions.ts"
import { rulesFile } from "./rules-file.ts"

/** The algorithm `sliding-log` has no window that could end, so the test can run at any time. */
const RULES = `
service_id: 1
rules: { name: per-user, field: user_id, algorithm: sliding-log, limit: 5, window: 1 day }
`

const rules = rulesFile(RULES)
const wrong = rulesFile(
  "service_id: 1\nrules: [{ name: a, limit: -1, window: 1m }, { name: b, limit: 5, window: soon }]\n",
)
let program: Program | undefined
afterEach(async () => {
  await program?.stop()
  program = undefined
})

const ask = async (program: Program, body: object) => (await post(program, FORWARD, body)).body

describe("the program", () => {
  it("counts in memory under the rules of a file, and logs its settings at the start", async () => {
    program = await startProgram(["--max-requests", "7"], {
      SLUICE_RULES: rules,
      SLUICE_MAX_REQUESTS: "8",
      SLUICE_MAX_IN_FLIGHT: "9",
      SLUICE_INSTANCES: "",
      SLUICE_CREATE_TABLE: "false",
      SLUICE_HTP_ADDRESS: "127.0.0.1:1",
      SLUICE_SERVICE_HOST: "10.0.0.1",
      SLUICE_HTTP_PORT: "tcp://10.0.0.1:80",
    })
    await program.said("The service is ready.")
    for (let left = 4; left >= 0; left--) {
      expect(await ask(program, { serviceId: 1, request: '{"user_id":"ada"}' })).toMatchObject({
        shouldForward: true,
        remaining: `${left}`,
      })
    }
    expect(await ask(program, { serviceId: 1, request: '{"user_id":"ada"}' })).toMatchObject({
      shouldForward: false,
      statusCode: 429,
    })
    // A flag has priority over its variable, and a variable has priority over the default.
    const { settings } = await program.said("sluice-service is listening.")
    expect(settings).toMatchObject({
      maxInFlight: 9,
      instances: 1,
      maxMessageBytes: 131_072,
      http: "127.0.0.1:0",
      tls: "none",
      rules,
      counters: "memory",
      registration: "open, because only this machine can connect",
      maxRequests: 7,
      drainPauseMs: 0,
      drainMs: 20_000,
    })
    // Variables that Kubernetes sets are not listed.
    expect(
      await program.said(
        "These environment variables are not settings of the service. Correct their names or remove them.",
      ),
    ).toMatchObject({
      level: "warn",
      variables: ["SLUICE_HTP_ADDRESS"],
    })
  })

  it("prevents V8 from pretenuring the objects of calls, even under high concurrency", async () => {
    program = await startProgram(["--rules", rules], {}, ["--trace-pretenuring-statistics"])
    await program.said("The service is ready.")
    const asked = program
    const before = asked.output().length
    for (let round = 0; round < 10; round++) {
      const body = { serviceId: 1, request: '{"user_id":"ada"}' }
      await Promise.all(Array.from({ length: 100 }, () => ask(asked, body)))
    }
    expect(asked.output().slice(before)).not.toMatch("pretenuring: AllocationSite")
  })

  it("never prints a secret", async () => {
    const secrets = ["token-of-one-service", "token-of-all-services", "hidden-pass", "hidden-param"]
    const env = {
      SLUICE_TOKENS: JSON.stringify({ 1: secrets[0], "*": secrets[1] }),
      // Nothing listens on this port, so errors of the Redis client are logged.
      REDIS_URL: `redis://user:${secrets[2]}@127.0.0.1:1/0?keyPrefix=${secrets[3]}`,
      SLUICE_LOG_LEVEL: "trace",
    }
    program = await startProgram(["--rules", rules], env)
    await program.said(/no connection to Redis/)
    await ask(program, { serviceId: 1, request: '{"user_id":"hidden-user"}' })
    const authorization = `Bearer ${secrets[0]}x`
    await post(program, "/sluice.v1.RateLimiter/GetService", { serviceId: 1 }, { authorization })
    program.signal("SIGTERM")
    expect(await program.ended).toEqual({ code: 0, signal: null })
    const { settings } = await program.said("sluice-service is listening.")
    expect(settings).toMatchObject({
      redis: "redis://***@127.0.0.1:1/0",
      registration: "with the token of 1, *",
    })
    for (const secret of [...secrets, "hidden-user"]) expect(program.output()).not.toContain(secret)
  })

  it("prints each problem of its settings on its own line, and exits with code 2", async () => {
    const { code, out, err } = await runProgram(
      ["--http", "8080", "--poll", "30", "--on-store-failure", "wait"],
      {
        SLUICE_GRPC_ADDRESS: "0.0.0.0:99999",
        SLUICE_TOKENS: '{"1":"too short"}',
        REDIS_URL: "http://user:hidden-pass@redis:6379",
      },
    )
    expect({ code, out }).toEqual({ code: 2, out: "" })
    expect(err.trimEnd().split("\n")).toEqual([
      'error: SLUICE_GRPC_ADDRESS (or --grpc): "0.0.0.0:99999" is not a valid address; accepted: host:port, such as 127.0.0.1:8080 or [::1]:8080; port 0 picks a free port',
      'error: --http (or SLUICE_HTTP_ADDRESS): "8080" is not a valid address; accepted: host:port, such as 127.0.0.1:8080 or [::1]:8080; port 0 picks a free port',
      'error: --poll (or SLUICE_POLL): "30" is not a valid time; accepted: a whole number with its unit: 50ms, 5s, 2m (up to 24 days)',
      'error: --on-store-failure (or SLUICE_ON_STORE_FAILURE): "wait" is not a valid choice; accepted: local, allow, deny',
      "error: REDIS_URL: its value (not shown) has the scheme http:; accepted: redis://host:6379, or rediss:// with TLS",
      'error: SLUICE_TOKENS: its value (not shown) is not a valid object of tokens: 1 of its 1 members are invalid; accepted: a JSON object with a token of 16 to 512 letters, digits and -._~+/ for each service, such as {"1": "…", "*": "…"}',
      "error: --rules (or SLUICE_RULES): is missing; give a file with rules, or a table with --table",
    ])
  })

  it("reports an unknown option in one line, and exits with code 2", async () => {
    expect(await runProgram(["--rule", rules])).toMatchObject({
      code: 2,
      out: "",
      err: "error: unknown option '--rule'\n(Did you mean --rules?)\n",
    })
  })

  it("reports a port that is in use, and its purpose, in one line, and exits with code 1", async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve))
    const taken = `127.0.0.1:${(other.address() as { readonly port: number }).port}`
    const free = "127.0.0.1:0"
    const flags = ["--grpc", taken, "--http", free, "--operations", free]
    expect(await runProgram(["--rules", rules, ...flags])).toMatchObject({
      code: 1,
      out: "",
      err: `error: gRPC cannot listen on ${taken}: the port is in use\n`,
    })
    other.close()
  })

  it("exits with code 1 if rules are invalid, and reports these rules and how to start anyway", async () => {
    const free = ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--operations", "127.0.0.1:0"]
    const { code, out, err } = await runProgram(["--rules", wrong, ...free])
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(err).toMatch(
      /^error: The rules file .* has invalid rules\..*--allow-invalid-rules.*\nWrong rules in ".*":\n {2}- rules\[0\]\.limit \(line 2, column 20\): -1 is not a limit; .*\n {2}- rules\[1\]\.window \(.*\): "soon" is not a window; .*\n$/,
    )
  })

  it("prints no error if the reader of the help stops early", async () => {
    expect(await runUnread(["--help"])).toEqual({ code: 0, signal: null, err: "" })
  })
})
