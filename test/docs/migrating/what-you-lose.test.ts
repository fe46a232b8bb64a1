import { expect, it } from "vitest"
import { namesIn, readGuide } from "./guide.ts"

it.each(["express-rate-limit.md", "fastify-rate-limit.md", "koa-ratelimit.md", "rate-limiter-flexible.md"])(
  "%s starts with the change, and names each option without a counterpart before the lists",
  (file) => {
    const { text, rows } = readGuide(file)
    const [start = "", ...sections] = text.split(/^## /m)
    expect(start).toMatch(/^Before:\n.*^```ts\n.*^After/ms)
    const titles = sections.map((section) => section.slice(0, section.indexOf("\n")))
    expect(titles.slice(0, 3)).toEqual(["What you gain", "What you lose", "Other defaults"])
    expect(titles.indexOf("Options")).toBeGreaterThan(2)
    const without = rows("Options").filter(({ becomes }) => becomes.startsWith("No counterpart"))
    for (const name of namesIn(without)) expect(sections[1]).toContain(`\`${name}`)
  },
)
