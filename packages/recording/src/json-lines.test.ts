import { mkdtemp, readFile, rename, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Writable } from "node:stream"
import { pathToFileURL } from "node:url"
import { InvalidOptionError } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { jsonLinesSink } from "./json-lines.ts"
import type { RecordedDecision } from "./recorded-decision.ts"

const record = (timeMs: number): RecordedDecision => ({
  ...{
    id: `a-${timeMs}`,
    kind: "decision",
    timeMs,
    service: 'a "shop"\n',
    allowed: true,
    degraded: false,
    policy: "p",
  },
  checks: [
    {
      policy: "p",
      partition: "line\nbreak",
      cost: 1,
      taken: 1,
      allowed: true,
      limit: 5,
      remaining: 4,
      shadow: false,
    },
  ],
})
/** Returns the times of the records in a string of JSON lines. */
const timesIn = (text: string): number[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line).timeMs)

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-records-"))
})
afterEach(() => rm(folder, { recursive: true }))

describe("a file of JSON lines", () => {
  it("receives a line for each record, in order", async () => {
    const path = join(folder, "a.jsonl")
    const sink = jsonLinesSink(path)
    await sink([record(1), record(2)])
    await sink([record(3)])
    const text = await readFile(path, "utf8")
    expect(timesIn(text)).toEqual([1, 2, 3])
    expect(text.split("\n")).toHaveLength(4)
    expect(JSON.parse(text.split("\n")[0] as string)).toEqual(record(1))
  })

  it("is created so that only its user can read it, and keeps its existing content", async () => {
    const path = join(folder, "a.jsonl")
    await jsonLinesSink(path)([record(1)])
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    await jsonLinesSink(pathToFileURL(path))([record(2)])
    expect(timesIn(await readFile(path, "utf8"))).toEqual([1, 2])
  })

  it("is created again after the old file has been renamed", async () => {
    const path = join(folder, "a.jsonl")
    const sink = jsonLinesSink(path)
    await sink([record(1)])
    await rename(path, join(folder, "b.jsonl"))
    await sink([record(2)])
    expect(timesIn(await readFile(path, "utf8"))).toEqual([2])
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it("that cannot be opened causes an error immediately", () => {
    expect(() => jsonLinesSink(join(folder, "none", "a.jsonl"))).toThrow(InvalidOptionError)
    expect(() => jsonLinesSink(folder)).toThrow(/destination: ".*" cannot be opened: Error: EISDIR/)
  })

  it("that can no longer be written makes the sink reject the batch", async () => {
    const path = join(folder, "a.jsonl")
    const sink = jsonLinesSink(path)
    await rm(folder, { recursive: true })
    await expect(async () => await sink([record(1)])).rejects.toThrow("ENOENT")
    folder = await mkdtemp(join(tmpdir(), "sluice-records-"))
  })
})

describe("a stream of JSON lines", () => {
  it("receives the lines, and the sink waits until they are written", async () => {
    const pending: (() => void)[] = []
    const stream = new Writable({ write: (_chunk, _encoding, done) => void pending.push(done) })
    let isWritten = false
    const written = Promise.resolve(jsonLinesSink(stream)([record(1)])).then(() => {
      isWritten = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect([pending.length, isWritten]).toEqual([1, false])
    pending[0]?.()
    await written
  })

  it("that fails makes the sink reject the batch, but does not end the process", async () => {
    const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error("broken pipe")) })
    const sink = jsonLinesSink(stream)
    await expect(async () => await sink([record(1)])).rejects.toThrow("broken pipe")
    // The stream emits the error later. Without a listener, the error would be thrown here.
    await new Promise((resolve) => setImmediate(resolve))
  })

  it("that was closed makes the sink reject every batch", async () => {
    const stream = new Writable({ write: (_chunk, _encoding, done) => done() })
    const sink = jsonLinesSink(stream)
    stream.destroy()
    for (let n = 0; n < 2; n++) await expect(async () => await sink([record(n)])).rejects.toThrow(/destroyed/)
  })

  it("keeps later lines intact after a write that failed halfway", async () => {
    let written = ""
    let isFull = true
    const stream = {
      on: () => stream,
      write(text: string, done: (error?: Error) => void) {
        written += isFull ? text.slice(0, 20) : text
        done(isFull ? new Error("no space left") : undefined)
      },
    }
    const sink = jsonLinesSink(stream as unknown as Writable)
    await expect(async () => await sink([record(1)])).rejects.toThrow("no space left")
    isFull = false
    await sink([record(2)])
    await sink([record(3)])
    const [part = "", ...lines] = written.split("\n")
    expect(part).toHaveLength(20)
    expect(timesIn(lines.join("\n"))).toEqual([2, 3])
    expect(lines).toHaveLength(3)
  })

  it.each([undefined, null, 5, {}, ""])("or a path is required, so %o is rejected", (destination) => {
    expect(() => jsonLinesSink(destination as never)).toThrow(InvalidOptionError)
  })
})
