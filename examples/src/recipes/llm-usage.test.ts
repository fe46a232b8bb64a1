import { describe, expect, it } from "vitest"
import { usageIn } from "./llm-usage.ts"

/** Returns an event stream, as a server with this line end sends it. */
function stream(events: readonly [name: string | undefined, data: unknown][], end = "\n"): string {
  return events
    .map(([name, data]) => {
      const json = typeof data === "string" ? data : JSON.stringify(data)
      return `${name === undefined ? "" : `event: ${name}${end}`}data: ${json}${end}${end}`
    })
    .join("")
}
const chunk = (content: string) => ({ choices: [{ delta: { content } }], usage: null })
const TOTAL = { prompt_tokens: 19, completion_tokens: 10, total_tokens: 29 }
const MESSAGE = [
  ["message_start", { type: "message_start", message: { usage: { input_tokens: 25, output_tokens: 1 } } }],
  [
    "content_block_delta",
    { type: "content_block_delta", delta: { text: 'data: {"usage":{"total_tokens":1}}' } },
  ],
  ["message_delta", { type: "message_delta", delta: {}, usage: { output_tokens: 9 } }],
  ["message_delta", { type: "message_delta", delta: {}, usage: { output_tokens: 15 } }],
  ["message_stop", { type: "message_stop" }],
] as const

describe("usageIn", () => {
  it("returns the total of a response in JSON, or the sum of its input and output", () => {
    expect(usageIn(JSON.stringify({ choices: [], usage: TOTAL }, null, 2))).toBe(29)
    expect(usageIn(` ${JSON.stringify({ usage: { input_tokens: 25, output_tokens: 15 } })}`)).toBe(40)
  })

  it.each(["\n", "\r\n"])("returns the total that the last chunk of a stream contains, with %j", (end) => {
    const chunks = [chunk("Hello"), chunk("data: {}\n"), { choices: [], usage: TOTAL }, "[DONE]"]
    expect(
      usageIn(
        stream(
          chunks.map((data) => [undefined, data]),
          end,
        ),
      ),
    ).toBe(29)
  })

  it("adds the input of a stream's first event to the output of its last one, which is cumulative", () => {
    expect(usageIn(stream([...MESSAGE.map(([name, data]) => [name, data] as [string, unknown])]))).toBe(40)
  })

  it("returns undefined for a response without usage", () => {
    expect(usageIn(JSON.stringify({ error: "overloaded" }))).toBeUndefined()
    expect(usageIn(stream([[undefined, chunk("Hello")]]))).toBeUndefined()
    expect(usageIn("")).toBeUndefined()
    expect(usageIn("Bad Gateway")).toBeUndefined()
  })
})
