import { InvalidOptionError } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express from "express"
import request from "supertest"
import { expect, it, onTestFinished } from "vitest"
import { blocksTestedBy, expectShown } from "./shown.ts"

const shownIn = (document: string): string =>
  blocksTestedBy("test/docs/messages.test.ts", document, 1)[0]?.text ?? ""

it("docs/errors/sluice_invalid_option.md shows the message for invalid options", () => {
  const options = { windw: "1 minute", limit: 0 } as never
  let thrown: unknown
  try {
    rateLimit(options)
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(InvalidOptionError)
  expectShown(shownIn("docs/errors/sluice_invalid_option.md"), String(thrown))
})

it("docs/production/proxies.md shows the warning for the first forwarded request", async () => {
  const warnings: string[] = []
  const listen = (warning: Error & { code?: string }): void => {
    warnings.push(`[${warning.code}] ${warning.name}: ${warning.message}`)
  }
  process.on("warning", listen)
  onTestFinished(() => void process.off("warning", listen))
  const app = express()
  app.use(rateLimit({ limit: 100, window: "1 minute" }))
  for (let times = 0; times < 2; times++) await request(app).get("/").set("x-forwarded-for", "192.0.2.7")
  expect(warnings).toHaveLength(1)
  expectShown(shownIn("docs/production/proxies.md"), warnings[0] ?? "")
})
