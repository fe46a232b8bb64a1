import { rulesInMemory } from "@sluice/service"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"
import { post as postTo } from "./post.ts"
import { FORWARD as PATH } from "./questions.ts"
import { type Started, startService } from "./started.ts"
import { openStranger } from "./stranger.ts"

let started: Started
beforeAll(async () => {
  const home = rulesInMemory()
  const rule = { name: "users", field: "user.id", limit: 10, window: "1 day" }
  await home.registry.register("shop", [rule])
  started = await startService(home)
})
afterAll(async () => {
  await started.stop()
  expect(started.faults).toEqual([])
})

interface Body extends Readonly<Record<string, unknown>> {
  readonly details?: readonly { readonly debug: { readonly fieldViolations: readonly { field: string }[] } }[]
  readonly responses?: readonly Readonly<Record<string, unknown>>[]
}

async function post(path: string, body: string | object): Promise<{ status: number; body: Body }> {
  return postTo(started, path, body)
}

const asked = (request: unknown): object => ({ service: "shop", request })
const fieldsOf = ({ details }: Body): readonly string[] =>
  (details ?? []).flatMap(({ debug }) => debug.fieldViolations.map(({ field }) => field))

it("a request may be an object, which identifies the same client as the text of the object", async () => {
  const user = { id: "ada" }
  expect((await post(PATH, asked({ user }))).body.remaining).toBe("9")
  expect((await post(PATH, asked(JSON.stringify({ user })))).body.remaining).toBe("8")
  const { body } = await post(`${PATH}s`, { requests: [asked({ user }), asked({ user: { id: "eve" } })] })
  expect(body.responses?.map(({ remaining }) => remaining)).toEqual(["7", "9"])
})

it("each number identifies a different client, and the same client as the string with its digits", async () => {
  const grpc = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  onTestFinished(() => grpc.close())
  const left = async (id: string, form: (user: string) => string): Promise<unknown> =>
    (await post(PATH, `{"service":"shop","request":${form(`{"user":{"id":${id}}}`)}}`)).body.remaining
  const asObject = (user: string): string => user
  const asText = (user: string): string => JSON.stringify(user)
  for (const id of [
    "12345678901234567",
    "12345678901234569",
    "12345678901234567890123",
    "0.12345678901234567891",
  ]) {
    expect(await left(id, asObject)).toBe("9")
    expect(await left(id, asText)).toBe("8")
    expect(await left(`"${id}"`, asObject)).toBe("7")
    const requests = [id, `"${id}"`].map((each) => `{"service":"shop","request":{"user":{"id":${each}}}}`)
    const { body } = await post(`${PATH}s`, `{"requests":[${requests}]}`)
    expect(body.responses?.map(({ remaining }) => remaining)).toEqual(["6", "5"])
    const over = await grpc.call("ShouldForwardRequest", {
      service: "shop",
      request: `{"user":{"id":${id}}}`,
    })
    expect(over).toMatchObject({ value: { remaining: 4 } })
  }
  for (const [at, five] of ["5", '"5"', "5.0", "5e0", "0.5e1", "5.00000000000000000"].entries()) {
    expect(await left(five, at % 2 === 0 ? asObject : asText)).toBe(`${9 - at}`)
  }
})

it.each([
  ["a number", 5],
  ["a boolean", true],
  ["an array", [{ user: { id: "ada" } }]],
])("a request that is %s is refused with the name of the field", async (what, request) => {
  const single = await post(PATH, asked(request))
  expect(single.status).toBe(400)
  expect(single.body.message).toContain(`request: is ${what}`)
  expect(fieldsOf(single.body)).toEqual(["request"])
  const many = await post(`${PATH}s`, { requests: [asked({ user: { id: "unharmed" } }), asked(request)] })
  expect(many.status).toBe(400)
  expect(fieldsOf(many.body)).toEqual(["requests[1].request"])
  const { body } = await post(PATH, { ...asked({ user: { id: "unharmed" } }), peek: true })
  expect(body.remaining).toBe("10")
})

it("an object has the same limit of 64 KiB as its text", async () => {
  const withBytes = (count: number): object => asked({ user: { id: "long" }, more: "x".repeat(count) })
  const room = 64 * 1024 - JSON.stringify({ user: { id: "long" }, more: "" }).length
  expect((await post(PATH, withBytes(room))).status).toBe(200)
  const { status, body } = await post(PATH, withBytes(room + 1))
  expect(status).toBe(400)
  expect(body.message).toContain("request: is longer than 65536 bytes")
})

it("an object with too many levels is refused", async () => {
  const levels = 20_000
  const deep = `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`
  const { status, body } = await post(PATH, `{"service":"shop","request":${deep}}`)
  expect(status).toBe(400)
  expect(fieldsOf(body)).toEqual(["request"])
})

it("an object may contain a member called __proto__, which does not become a field of other requests", async () => {
  const { status } = await post(PATH, '{"service":"shop","request":{"__proto__":{"user":{"id":"x"}}}}')
  expect(status).toBe(200)
  expect(({} as { user?: unknown }).user).toBeUndefined()
})
