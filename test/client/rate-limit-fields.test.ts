import fc from "fast-check"
import { serializeList } from "structured-headers"
import { expect, it } from "vitest"
import { paced } from "../../packages/client/src/index.ts"

// The client reads RateLimit fields without a library for structured fields (RFC 9651). Such a library writes the
// fields of these tests.

const count = fc.integer({ min: 1, max: 1_000_000 })
const name = fc.string({ unit: fc.constantFrom(...'a"\\;,=( r1') })
const partition = fc.uint8Array({ maxLength: 9 }).map(({ buffer }) => buffer)
const policy = fc.record({ name, q: count, w: count, r: count, t: count, partition })

async function statusAfter(headers: Readonly<Record<string, string>>) {
  const api = paced(async () => new Response(null, { headers }))
  await api("http://localhost/")
  const [status] = api.status()
  return status
}

it("the client reads each RateLimit field that a serializer of structured fields writes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(policy, { minLength: 1, maxLength: 4, selector: (each) => each.name }),
      async (policies) => {
        const [scarcest] = [...policies].sort((a, b) => a.r - b.r)
        const status = await statusAfter({
          ratelimit: serializeList(
            policies.map((each) => [
              each.name,
              new Map<string, number | ArrayBuffer>([
                ["pk", each.partition],
                ["r", each.r],
                ["t", each.t],
              ]),
            ]),
          ),
          "ratelimit-policy": serializeList(
            policies.map((each) => [
              each.name,
              new Map<string, number | ArrayBuffer>([
                ["q", each.q],
                ["pk", each.partition],
                ["w", each.w],
              ]),
            ]),
          ),
        })
        expect(status).toMatchObject({ mode: "paced", dialect: "draft-8", remaining: scarcest?.r })
        const quotas = policies.filter(({ r }) => r === scarcest?.r).map(({ q }) => q)
        expect(quotas).toContain(status?.quota)
      },
    ),
  )
})

it("a RateLimit field of any length is read in linear time", async () => {
  // With quadratic time, these fields would take hours.
  for (const part of ['"\\"', '"a', '";"', '"\\', ',"', ";"])
    expect(await statusAfter({ ratelimit: part.repeat(500_000) })).toMatchObject({ mode: "open" })
})
