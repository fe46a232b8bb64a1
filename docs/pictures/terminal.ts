import { readFileSync } from "node:fs"
import { type Diagram, diagram } from "./diagram.ts"
import { box, escapeText, LINE_HEIGHT, type Look, WIDTH } from "./draw.ts"

/**
 * What `pnpm demo` printed. To record it again, run
 * `npx tsx --tsconfig examples/tsconfig.json examples/src/demo/main.ts > docs/pictures/demo.txt`.
 */
export const DEMO: string = readFileSync(new URL("demo.txt", import.meta.url), "utf8")

/** Lines that say nothing about limits: other headers and the body of the refusal, a page, and what to try next. */
const LEFT_OUT = /^(X-|Content-|Date|Connection|Keep-|Cache-)|^[{} ] .*[":\]]|^[{}]$|^(Next|While)|^ +npx/
/** The width of a letter. Each piece of text has a fixed width, so that columns are straight with any font. */
const LETTER = 6.9
const LEFT = 20
const TOP = 38

/** Draws what the demo prints: its table, a refusal, and its result. */
export function drawTerminal(): Diagram {
  const lines = DEMO.trim()
    .split("\n")
    .filter((line) => !LEFT_OUT.test(line))
    .filter((line, at, all) => line !== "" || (all[at + 1] ?? "") !== "")
  const height = TOP + lines.length * LINE_HEIGHT - 4
  const results = lines.filter((line) => line.startsWith("✓")).map((line) => line.slice(2))
  const description =
    "The terminal shows a table of three clients of each server, with a bar for the used units, and a refusal with the status " +
    `429, RateLimit and Retry-After. Below: ${results.join(" ")}`
  return diagram("terminal.svg", { title: "The demo", description, height: height + 4 }, [
    '<style>text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}</style>',
    box({ x: 4, y: 4, width: WIDTH - 8, height }, "others", [], [], {
      parts: lines.flatMap((line, row) =>
        [...line.matchAll(/\S+(?: \S+)*/g)].map(({ 0: words, index }) =>
          piece(words, index, TOP + row * LINE_HEIGHT),
        ),
      ),
    }),
  ])
}

function piece(words: string, column: number, y: number): string {
  const look = lookOf(words)
  const width = (count: number): number => Math.round(count * LETTER * 10) / 10
  return `<text${look && ` class="${look}"`} x="${LEFT + width(column)}" y="${y}" textLength="${width(words.length)}" lengthAdjust="spacingAndGlyphs">${escapeText(words)}</text>`
}

/** Returns the color of a piece of text, as a terminal shows it. */
function lookOf(words: string): Look | "strong" | "" {
  if (/^(■+|HTTP\/1.1 429.*)$/.test(words)) return "refused"
  if (/^(RateLimit|Retry-After)/.test(words)) return "goal"
  if (/[■✓]/.test(words)) return "good"
  return /^(Sluice|Express|Fastify|Koa)/.test(words) ? "strong" : ""
}
