import { expect, it } from "vitest"
import { namesIn, readGuide } from "./guide.ts"

it.each(["express-rate-limit.md", "fastify-rate-limit.md", "koa-ratelimit.md", "rate-limiter-flexible.md"])(
  "%s starts with what a user loses",
  (file) => {
    const { text, rows } = readGuide(file)
    const [, first = "", ...sections] = text.split(/^## /m)
    expect(first).toMatch(/^What you lose\n/)
    const without = rows("Options").filter(({ becomes }) => becomes.startsWith("No counterpart"))
    for (const name of namesIn(without)) expect(first).toContain(`\`${name}`)
    expect(sections.length).toBeGreaterThan(3)
  },
)
