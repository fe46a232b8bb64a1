import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import type { RequestListener } from "node:http"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/express"
import express from "express"
import express4 from "express4"
import { afterAll, beforeAll, expect, it } from "vitest"
import { listening } from "./servers/listening.ts"

const SPELLINGS = [
  ...["/files/x.txt", "/%66iles/x.txt", "//files/x.txt", "/files%2fx.txt", "/%2Ffiles/x.txt"],
  ...["/./files/x.txt", "/%2e/files/x.txt", "/files/./x.txt", "/a/../files/x.txt", "/a/%2e%2E/files/x.txt"],
  ...["/a%2f../files/x.txt", "http://h/files/x.txt", "http://h%66iles/x.txt", "http://h%2ffiles/x.txt"],
  ...["//a@b/files/x.txt#", "/files/x.txt?y", "/files/x.txt#y", "/files\\x.txt#"],
]

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-files-"))
  mkdirSync(join(folder, "files"))
  writeFileSync(join(folder, "files/x.txt"), "served")
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Returns a server's responses to exactly these targets, each on its own connection. */
async function answersOf(app: RequestListener, targets: readonly string[]): Promise<readonly string[]> {
  const { port } = new URL(await listening(app))
  const ask = (target: string) =>
    new Promise<string>((resolve, reject) => {
      let answer = ""
      const socket = connect(Number(port), "127.0.0.1").setEncoding("utf8").on("error", reject)
      socket.on("data", (text) => {
        answer += text
      })
      socket.on("close", () => resolve(answer))
      socket.write(`GET ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`)
    })
  const answers: string[] = []
  for (const target of targets) answers.push(await ask(target))
  return answers
}

// The two versions differ only in their types.
it.each([
  ["Express 5", express],
  ["Express 4", express4 as unknown as typeof express],
])("no spelling under which %s serves a file bypasses a rule for its path", async (_name, make) => {
  const open = make().use(make.static(folder))
  const served = await answersOf(open, SPELLINGS)
  const reaching = SPELLINGS.filter((_, at) => served[at]?.endsWith("served"))
  expect(reaching.length).toBeGreaterThan(SPELLINGS.length / 2)

  const rule = { limit: 1, window: "1 minute", match: { path: "/files/*" }, clock: manualClock() } as const
  const limited = make().use(rateLimit(rule)).use(make.static(folder))
  const answers = await answersOf(limited, ["/files/x.txt", ...reaching])
  expect(answers[0]).toMatch(/^HTTP\/1.1 200 /)
  const slipping = reaching.filter((_, at) => !answers[at + 1]?.startsWith("HTTP/1.1 429 "))
  expect(slipping).toEqual([])
})
