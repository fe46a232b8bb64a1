import { expect, it } from "vitest"
import { namesIn, readGuide } from "./guide.ts"

it.each([
  ["express-rate-limit.md", "express-rate-limit.md"],
  ["fastify-rate-limit.md", "fastify-rate-limit.md"],
  ["koa-ratelimit.md", "koa-ratelimit.md"],
  ["bottleneck.md", "bottleneck.md"],
  ["rate-limiter-flexible.md", "rate-limiter-flexible-names.md"],
])(
  "%s begins with code before and after the change, and lists lost options before all other lists",
  (file, lists) => {
    const { text } = readGuide(file)
    const [start = "", ...sections] = text.split(/^## /m)
    expect(start).toMatch(/^Before:\n.*^```ts\n.*^After/ms)
    const titles = sections.map((section) => section.slice(0, section.indexOf("\n")))
    const at = titles.indexOf("What you gain")
    expect(titles.slice(at, at + 3)).toEqual(["What you gain", "What you lose", "Other defaults"])
    if (file === lists) expect(titles.indexOf("Options")).toBeGreaterThan(at)
    const without = readGuide(lists)
      .rows("Options")
      .filter(({ becomes }) => becomes.startsWith("No counterpart"))
    for (const name of namesIn(without)) expect(sections[at + 1]).toContain(`\`${name}`)
  },
)
