import type { Rejection } from "@sluice/core"
import { liveRules } from "@sluice/rules"
import { describe, expect } from "vitest"
import type { Behaves } from "./stage.ts"

/** The ways in which a callback of the app may return its result. */
const WAYS = [
  ["immediately", <T>(value: T) => value],
  ["in a promise", <T>(value: T) => Promise.resolve(value)],
] as const

/** Registers the behaviors of responses to refused clients, most of which use `onRejected`. */
export function answering(behaves: Behaves): void {
  behaves("points a refused client to the page about its limits", async ({ start, base }) => {
    const loaded = {
      rules: [{ name: "one", field: "ip", limit: 1, window: "1 minute" }],
      metadata: { owner: "shop", link: "https://example.com/limits" },
      problems: [],
    }
    const rules = liveRules({ load: async () => loaded, loadSync: () => loaded })
    const client = await start({ mounts: [{ ...base, rules }] })
    expect((await client("/")).headers.link).toBeUndefined()
    const { status, headers } = await client("/")
    expect([status, headers.link]).toEqual([429, '<https://example.com/limits>; rel="help"'])
  })

  describe("onRejected", () => {
    const rule = { limit: 1, window: "1 minute" } as const

    behaves("gets the request, the standard response and the decision", async ({ limited, adapter }) => {
      const got: unknown[] = []
      const client = await limited({
        ...rule,
        onRejected: (request, rejection, decision) => {
          got.push(adapter.headerOf(request, "x-who"), rejection.status, rejection.body, decision.allowed)
          got.push(adapter.decisionOf(request) === decision)
        },
      })
      await client("/")
      const response = await client("/", { headers: { "X-Who": "me" } })
      expect(got).toEqual(["me", 429, response.body, false, true])
      expect(response.status).toBe(429)
      expect(response.headers["content-type"]).toBe("application/problem+json")
    })

    for (const [how, wrap] of WAYS) {
      behaves(`returns another answer ${how}, which also gets the quota headers`, async ({ limited }) => {
        const client = await limited({
          ...rule,
          onRejected: () =>
            wrap({
              status: 403,
              headers: [
                ["Content-Type", "text/html; charset=utf-8"],
                ["X-Own", "yes"],
              ] as const,
              body: "<p>später</p>",
            }),
        })
        await client("/")
        const { status, headers, body } = await client("/")
        expect(status).toBe(403)
        expect(body).toBe("<p>später</p>")
        expect(headers).toMatchObject({
          "content-type": "text/html; charset=utf-8",
          "x-own": "yes",
          "content-length": "14",
          ratelimit: '"ip-1m";r=0;t=61',
        })
        expect(headers).toMatchObject({ "retry-after": "61", "cache-control": "no-store" })
      })
    }

    behaves(
      "returns another answer, whose last header of each name and all cookies are sent",
      async (stage) => {
        const lines = [
          ["Set-Cookie", "a=1; Path=/"],
          ["set-cookie", "b=2"],
          ["Retry-After", "5"],
          ["X-Own", "no"],
          ["content-type", "application/json"],
          ["x-own", "yes"],
        ] as const
        const onRejected = (_request: unknown, rejection: Rejection) => ({
          ...rejection,
          headers: [...rejection.headers, ...lines],
        })
        const client = await stage.limited({ ...rule, onRejected }, { setsCookie: "app=1" })
        await client("/")
        const { status, headers } = await client("/")
        expect([status, headers["retry-after"], headers["x-own"]]).toEqual([429, "5", "yes"])
        expect(headers["set-cookie"]?.split(", ").sort()).toEqual(["a=1; Path=/", "app=1", "b=2"])
        expect(headers["content-type"]).toBe("application/json")
      },
    )

    behaves("sends the response itself", async ({ limited, adapter, warnings }) => {
      const client = await limited({
        ...rule,
        onRejected: (_request, _rejection, _decision, response) => {
          void adapter.reply(response, 402, "pay")
        },
      })
      await client("/")
      const { status, headers, body } = await client("/")
      expect([status, body]).toEqual([402, "pay"])
      expect(headers).toMatchObject({
        ratelimit: '"ip-1m";r=0;t=61',
        "retry-after": "61",
        "cache-control": "no-store",
      })
      expect(headers["content-type"]).not.toBe("application/problem+json")
      expect(warnings).toEqual([])
    })

    behaves("sends the response itself, later", async ({ limited, adapter }) => {
      const client = await limited({
        ...rule,
        onRejected: async (_request, _rejection, _decision, response) => {
          await new Promise(setImmediate)
          await adapter.reply(response, 402, "pay")
        },
      })
      await client("/")
      const { status, body } = await client("/")
      expect([status, body]).toEqual([402, "pay"])
    })

    for (const [status, length] of [
      [204, undefined],
      [205, "0"],
      // Fastify sends the length itself.
      [304, "0"],
    ] as const) {
      behaves(`answers with ${status}, which is sent without a body`, async ({ start, base }) => {
        const onRejected = (_request: unknown, rejection: Rejection) => ({ ...rejection, status })
        const client = await start({ mounts: [{ ...base, ...rule, onRejected }] })
        await client("/")
        const answer = await client("/")
        expect([answer.status, answer.body]).toEqual([status, ""])
        expect(answer.headers).toMatchObject({ "retry-after": "61" })
        expect(answer.headers["content-type"]).not.toBe("application/problem+json")
        expect([undefined, length]).toContain(answer.headers["content-length"])
        // The connection remains usable for the next request.
        expect((await client("/")).status).toBe(status)
      })
    }

    for (const [how, wrap] of WAYS) {
      behaves(`returns false ${how}, and sends the response itself in a later turn`, async (stage) => {
        const { limited, adapter, warnings } = stage
        const client = await limited({
          ...rule,
          onRejected: (_request, _rejection, _decision, response) => {
            adapter.replyLater(response, 402, "pay")
            return wrap(false as const)
          },
        })
        await client("/")
        const { status, headers, body } = await client("/")
        expect([status, body]).toEqual([402, "pay"])
        expect(headers).toMatchObject({ ratelimit: '"ip-1m";r=0;t=61', "retry-after": "61" })
        expect(headers["content-type"]).not.toBe("application/problem+json")
        expect(warnings).toEqual([])
      })
    }

    for (const [how, wrap] of WAYS) {
      behaves(`begins to send the response itself, and returns undefined ${how}`, async (stage) => {
        const { limited, adapter, warnings } = stage
        const client = await limited({
          ...rule,
          onRejected: (_request, _rejection, _decision, response) => {
            adapter.replyInParts(response, 402, "pay")
            return wrap(undefined)
          },
        })
        await client("/")
        const { status, headers, body } = await client("/")
        expect([status, headers["x-own"], body]).toEqual([402, "yes", "pay"])
        expect(warnings).toEqual([])
      })
    }

    const broken = Object.assign(new Error("No."), { status: 418, statusCode: 418 })
    for (const [how, fail] of [
      ["throws", (error: unknown): never => throws(error)],
      ["rejects", (error: unknown) => Promise.reject(error)],
    ] as const) {
      behaves(`that ${how} reaches the framework's error handler`, async ({ start, base, warnings }) => {
        const client = await start({ mounts: [{ ...base, ...rule, onRejected: () => fail(broken) }] })
        await client("/")
        for (let i = 0; i < 2; i++) expect((await client("/")).status).toBe(418)
        expect(warnings).toEqual([])
      })

      behaves(
        `that ${how} a value that is not an Error does not admit the request`,
        async ({ start, base }) => {
          for (const value of [undefined, null, 0, "route", "router"]) {
            const client = await start({ mounts: [{ ...base, ...rule, onRejected: () => fail(value) }] })
            await client("/")
            expect([value, (await client("/")).status]).toEqual([value, 500])
          }
        },
      )
    }

    for (const [what, nonsense] of [
      ["a string", "slow down"],
      ["an object without the members of an answer", { error: "slow down" }],
      ["a list", ["slow down"]],
      ["an incomplete answer", { status: 429 }],
      ["a header that cannot be sent", { status: 429, headers: [["X-Own", "a\nb"]], body: "" }],
      ["a header without a name", { status: 429, headers: [["", "a"]], body: "" }],
      ["a status that does not exist", { status: 7, headers: [], body: "" }],
    ] as const) {
      for (const [how, wrap] of WAYS) {
        behaves(
          `that returns ${what} ${how} is replaced by the standard response, with one warning`,
          async (stage) => {
            const { limited, warnings } = stage
            const client = await limited({ ...rule, onRejected: () => wrap(nonsense) as never })
            await client("/")
            for (let i = 0; i < 2; i++) {
              const { status, headers } = await client("/")
              expect(status).toBe(429)
              expect(headers["retry-after"]).toBe("61")
            }
            expect(warnings).toEqual(["SLUICE_CALLBACK_FAILED"])
          },
        )
      }
    }

    for (const [how, wrap] of WAYS) {
      behaves(`may return anything ${how} after it has sent the response itself`, async (stage) => {
        const { limited, adapter, warnings } = stage
        const client = await limited({
          ...rule,
          onRejected: (_request, _rejection, _decision, response) => {
            void adapter.reply(response, 402, "pay")
            return wrap({ error: "ignored" }) as never
          },
        })
        await client("/")
        const { status, body } = await client("/")
        expect([status, body, warnings]).toEqual([402, "pay", []])
      })
    }

    behaves(
      "that throws after it has sent the response itself causes one warning, and the response is kept",
      async ({ start, base, adapter, warnings }) => {
        const onRejected = (
          _request: unknown,
          _rejection: unknown,
          _decision: unknown,
          response: unknown,
        ) => {
          void adapter.reply(response, 402, "pay")
          return throws(broken)
        }
        const client = await start({ mounts: [{ ...base, ...rule, onRejected }] })
        await client("/")
        for (let i = 0; i < 2; i++) {
          const { status, body } = await client("/")
          expect([status, body]).toEqual([402, "pay"])
        }
        expect(warnings).toEqual(["SLUICE_CALLBACK_FAILED"])
      },
    )
  })
}

function throws(error: unknown): never {
  throw error
}
