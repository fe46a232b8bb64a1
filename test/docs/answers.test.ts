import { request } from "node:http"
import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/express"
import express from "express"
import { expect, it, onTestFinished } from "vitest"
import { listen } from "../contracts/adapter/listen.ts"
import { blocksTestedBy } from "./shown.ts"

interface Answer {
  readonly first: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/** Resolves to the response that a client receives. The first line and the headers are unchanged. */
function answerOf(url: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(url, (response) => {
      const { httpVersion, statusCode, statusMessage, rawHeaders } = response
      const pairs = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ""]] : []))
      let body = ""
      response.on("data", (text: Buffer) => {
        body += text
      })
      response.once("end", () =>
        resolve({
          first: `HTTP/${httpVersion} ${statusCode} ${statusMessage}`,
          headers: Object.fromEntries(pairs),
          body: JSON.parse(body),
        }),
      )
    })
    asked.once("error", reject).end()
  })
}

it("the README shows the response to a client over its limit", async () => {
  const [block] = blocksTestedBy("test/docs/answers.test.ts", "README.md", 1)
  const [head = "", shown = ""] = block?.text.split("\n\n") ?? []
  const [first, ...lines] = head.split("\n")
  const clock = manualClock()
  const app = express()
  app.use(rateLimit({ limit: 100, window: "1 minute", clock }))
  app.get("/", (_req, res) => void res.json({}))
  const { url, close } = await listen(app)
  onTestFinished(close)
  // This time is just under 17 seconds before the end of the minute.
  clock.advance(43_001)
  for (let times = 0; times < 100; times++) await fetch(url)
  const answer = await answerOf(url)
  expect(answer.first).toBe(first)
  expect(answer.headers).toMatchObject(Object.fromEntries(lines.map((line) => line.split(": "))))
  expect(answer.body).toEqual(JSON.parse(shown))
})
