import { once } from "node:events"
import { request } from "node:http"
import { manualClock } from "@sluice/core/testing"
import type { RequestHandler } from "express"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./uploads.ts"

const clock = manualClock()
let server: Served
/** The sizes of the saved files in bytes. */
let saved: number

const save: RequestHandler = async (req, res) => {
  for await (const piece of req) saved += (piece as Buffer).length
  res.sendStatus(201)
}

beforeEach(async () => {
  clock.resetAll()
  saved = 0
  server = await serve(createApp(save, { clock }))
})
afterEach(() => server.close())

/** Uploads a file of this many bytes. */
const upload = (bytes: number) => fetch(`${server.url}/files`, { method: "POST", body: Buffer.alloc(bytes) })
const leftAfter = ({ headers }: Response) => Number(/r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1])

describe("uploads", () => {
  it("take as many units as their file has bytes", async () => {
    expect(leftAfter(await upload(0))).toBe(100_000_000)
    expect(leftAfter(await upload(1))).toBe(99_999_999)
    expect(leftAfter(await upload(1_000_000))).toBe(98_999_999)
    expect(saved).toBe(1_000_001)
  })

  it("are refused with the exact wait before their body is read", async () => {
    expect((await upload(60_000_000)).status).toBe(201)
    const refused = await upload(41_000_000)
    expect(refused.status).toBe(429)
    expect(saved).toBe(60_000_000)
    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1_000)
    expect((await upload(41_000_000)).status).toBe(429)
    clock.advance(1_000)
    expect((await upload(41_000_000)).status).toBe(201)
  })

  it("that are refused take no units, so smaller files can still be sent", async () => {
    expect((await upload(60_000_000)).status).toBe(201)
    expect((await upload(41_000_000)).status).toBe(429)
    expect((await upload(40_000_000)).status).toBe(201)
  })

  it("are refused without Retry-After if the file is larger than the limit", async () => {
    const { status, headers } = await upload(100_000_001)
    expect(status).toBe(429)
    expect(headers.get("retry-after")).toBeNull()
  })

  it("are refused if they have no Content-Length, like a stream", async () => {
    const asked = request(`${server.url}/files`, { method: "POST" })
    asked.write("the first piece of a stream")
    const [response] = await once(asked, "response")
    expect(response.statusCode).toBe(411)
    asked.destroy()
  })
})
