import { expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { openStranger } from "../service/stranger.ts"
import type { Project } from "./project.ts"
import { blocksOf } from "./quick-start.ts"

const START_MS = 60_000
const INVALID_ARGUMENT = 3
const ANY_PORT = "127.0.0.1:0"

/** Registers the tests of the installed programs. `redisUrl` is called after the programs are installed. */
export function itRunsThePrograms(project: Project, redisUrl: () => string): void {
  it("npx sluice prints its commands, and checks rules files", async () => {
    project.write("rules.yaml", "rules: { field: ip, limit: 5, window: 1 minute }\n")
    project.write("wrong.yaml", "rules: { limit: 5, windw: 1 minute }\n")
    expect((await project.run("npx", "sluice", "--help")).stdout).toContain("Usage: sluice")
    const program = project.installed(".bin", "sluice")
    expect((await project.run(program, "rules", "check", "rules.yaml")).stdout).toBe(
      "1 service, 1 rule: ok\n",
    )
    const wrong = await project.start(program, ["rules", "check", "wrong.yaml"]).ended
    expect(wrong.code).toBe(1)
    expect(wrong.stdout).toContain("windw")
  })

  it.each([
    ["on", { plain: 3, "grpc-js": 0 }],
    ["off", { plain: 0, "grpc-js": 3 }],
  ])(
    "with plain calls %s, sluice-service responds to the README's request over HTTP and gRPC, and counts in Redis",
    async (plainCalls, readers) => {
      const [rules = ""] = blocksOf(project, "service", "yaml")
      const [question = ""] = blocksOf(project, "service", "sh").filter((block) => block.startsWith("curl "))
      const body = /-d '(.*)'/.exec(question)?.[1]
      const path = /http:\/\/[^/]+(\/\S+)/.exec(question)?.[1]
      // Use an exact log over a day, so that no window ends during the test.
      project.write("service.yaml", rules.replace("1 minute", "1 day, algorithm: sliding-log"))
      const ports = ["--grpc", ANY_PORT, "--http", ANY_PORT, "--operations", ANY_PORT]
      // The timeout is long, because this test does not check timeouts.
      const given = ["--rules", "service.yaml", "--store-timeout", "60s", "--plain-calls", plainCalls]
      const args = [...given, "--redis-prefix", `plain-${plainCalls}:`, ...ports]
      const service = project.start(project.installed(".bin", "sluice-service"), args, {
        REDIS_URL: redisUrl(),
      })
      try {
        const at = await portsOf(service)
        const answers: unknown[] = []
        for (let asked = 0; asked < 4; asked++) {
          const response = await fetch(`http://127.0.0.1:${at.http}${path}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: body ?? "",
          })
          answers.push(await response.json())
        }
        expect(answers).toMatchObject(
          [4, 3, 2, 1].map((left) => ({ shouldForward: true, remaining: `${left}` })),
        )
        const caller = openStranger(
          `127.0.0.1:${at.grpc}`,
          "sluice/v1/rate_limiter.proto",
          "sluice.v1.RateLimiter",
        )
        for (const left of ["last", "none"]) {
          const asked = { service_id: 1, request: '{"user_id": 7}' }
          expect(await caller.call("ShouldForwardRequest", asked)).toMatchObject({
            value: { should_forward: left === "last", remaining: 0 },
          })
        }
        expect(await caller.call("ShouldForwardRequest", {})).toMatchObject({
          error: { code: INVALID_ARGUMENT, details: "service_id: is missing; give service_id or service" },
        })
        caller.close()
        const metrics = await (await fetch(`http://127.0.0.1:${at.operations}/metrics`)).text()
        for (const [reader, calls] of Object.entries(readers)) {
          expect(metrics).toContain(
            `sluice_service_grpc_calls_total{sluice_service_reader="${reader}"} ${calls}\n`,
          )
        }
        const state = await fetch(`http://127.0.0.1:${at.operations}/readyz`)
        expect(await state.json()).toMatchObject({ store: { kind: "redis", status: "reachable" } })
      } finally {
        expect(await service.stop()).toMatchObject({ code: 0, stderr: "" })
      }
    },
  )
}

/** Waits until the service logs its ports. */
async function portsOf(service: ReturnType<Project["start"]>): Promise<Readonly<Record<string, number>>> {
  let ended: unknown
  void service.ended.then((how) => {
    ended = how
  })
  const told = (): string | undefined =>
    service
      .output()
      .split("\n")
      .find((line) => line.includes('"sluice-service is listening."') && line.endsWith("}"))
  await until("sluice-service is listening.", () => told() !== undefined || ended !== undefined, START_MS)
  const line = told()
  if (line === undefined) throw new Error(`sluice-service has ended:\n${service.output()}`)
  return JSON.parse(line).ports
}
