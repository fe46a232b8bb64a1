import { expect, it, onTestFinished } from "vitest"
import { startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { post } from "./post.ts"
import { type Program, startProgram } from "./program.ts"
import { FORWARD } from "./questions.ts"
import { rulesFile } from "./rules-file.ts"

const RULES = `
service_id: shop
rules: { name: calls, field: user, limit: 1, window: 1 day }
---
service_id: maps
rules: { name: tiles, field: user, limit: 1, window: 1 day }
`
const METHODS = "/sluice.v1.RateLimiter/"

interface Listed {
  readonly instances: number
  readonly missing: string
  readonly refused: readonly { readonly client: readonly string[]; readonly refusals: number }[]
}

async function ask<Answer>(
  program: Program,
  method: string,
  body: object,
  token = "token-of-the-shop",
): Promise<Answer> {
  const answered = await post(program, METHODS + method, body, { authorization: `Bearer ${token}` })
  expect([answered.status, answered.body]).toEqual([200, answered.body])
  return answered.body as Answer
}

const list = (program: Program) => ask<Listed>(program, "ListClients", { service: "shop" })
const shown = ({ refused }: Listed) => refused.map(({ client, refusals }) => `${client} ${refusals}`)

it("each instance lists what all instances have refused, without a killed one, and alone without Redis", async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const args = ["--rules", rulesFile(RULES), "--activity", "--redis-prefix", "a:", "--store-timeout", "20s"]
  const env = {
    REDIS_URL: `redis://${server.host}:${server.port}`,
    SLUICE_TOKENS: '{"shop":"token-of-the-shop","maps":"token-of-the-maps"}',
  }
  const programs = await Promise.all([0, 1, 2].map(() => startProgram(args, env)))
  onTestFinished(() => Promise.all(programs.map((each) => each.stop())).then(() => undefined))
  await Promise.all(programs.map((each) => each.said("The service is ready.")))
  const [first, second, third] = programs as [Program, Program, Program]
  const decide = async (program: Program, user: string, times: number, service = "shop"): Promise<void> => {
    for (let i = 0; i < times; i++) await post(program, FORWARD, { service, request: { user } })
  }
  await decide(first, "ada", 3)
  await decide(second, "ada", 2)
  await decide(third, "eve", 4)
  await decide(third, "bob", 9, "maps")

  // Already the first list is complete, because the service waits for the other instances.
  await until("the first list is complete", async () => (await list(first)).instances === 3)
  for (const program of programs) {
    await until("each list is complete", async () => (await list(program)).instances === 3)
    const listed = await list(program)
    expect([shown(listed), listed.missing]).toEqual([["ada 4", "eve 3"], ""])
    const { services } = await ask<{ services: readonly object[] }>(program, "Overview", {})
    expect(services).toMatchObject([
      { service: "shop", instances: 3, seconds: { refused: "7", admitted: "2" } },
    ])
  }
  const { services } = await ask<{ services: readonly object[] }>(first, "Overview", {}, "token-of-the-maps")
  expect(services).toMatchObject([{ service: "maps", instances: 1, seconds: { refused: "8" } }])

  third.signal("SIGKILL")
  await third.ended
  await until("the killed instance is forgotten", async () => (await list(first)).instances === 2)
  expect(shown(await list(second))).toEqual(["ada 4"])

  await server.stop()
  await until("the outage is noticed", async () => (await list(first)).missing !== "")
  const alone = await list(first)
  expect(alone).toMatchObject({
    instances: 1,
    missing: expect.stringMatching(/^Only this process is included\. Redis /),
  })
  expect(shown(alone)).toEqual(["ada 2"])
  expect(await ask(first, "Overview", {})).toMatchObject({
    missing: expect.stringContaining("Only this process"),
  })
})
