import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import * as fc from "fast-check"
import { afterAll, describe, expect, it, vi } from "vitest"
import { LogError } from "../log-error.ts"
import { MAX_LINE_BYTES } from "./lines.ts"
import { facts, readAll, readInput } from "./testing/read-all.ts"
import { clf } from "./testing/write-lines.ts"

const folder = mkdtempSync(join(tmpdir(), "sluice-logs-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
function fileOf(content: string | Uint8Array): string {
  const path = join(folder, `${files++}.log`)
  writeFileSync(path, content)
  return path
}

const START = Date.UTC(2025, 5, 3, 8)

/** Returns a line of the combined format. `second` counts from `START`. */
function line(second: number, target: string | number = "/", status = 200): string {
  return `192.0.2.1 - - [${clf(START + second * 1_000)}] "GET /${target} HTTP/1.1" ${status} 5 "-" "test"`
}

/** Returns a line with milliseconds. */
function exact(ms: number, id: string | number): string {
  return JSON.stringify({ t: START + ms, id: `${id}` })
}
const EXACT = { map: { time: "t", id: "id" } }

const text = (...lines: readonly string[]): string => lines.map((each) => `${each}\n`).join("")
const targets = (records: readonly { readonly url?: string | undefined }[]): string[] =>
  records.map(({ url }) => (url ?? "").slice(1))
const ids = (
  records: readonly { readonly named?: Readonly<Record<string, string | undefined>> | undefined }[],
) => records.map(({ named }) => named?.id)

describe("readLogs", () => {
  it.each([
    ["any JSON lines", (id: string) => `{"t":${START},"user":{"id":${id}}}`, { time: "t" }],
    [
      "pino-http",
      (id: string) =>
        `{"time":${START},"req":{"method":"GET","url":"/","remoteAddress":"192.0.2.1"},"responseTime":1,"user":{"id":${id}}}`,
      {},
    ],
  ])(
    "reads long numbers in a field of --map in %s with all of their digits",
    async (_format, written, map) => {
      const given = ["12345678901234567", '"12345678901234567"', "12345678901234568", "5.0", "1e3", "true"]
      const { records } = await readInput(text(...given.map(written)), { map: { ...map, id: "user.id" } })
      const read = ["12345678901234567", "12345678901234567", "12345678901234568", "5", "1000", "true"]
      expect(ids(records)).toEqual(read)
    },
  )

  it("counts lines, requests, other lines and statuses", async () => {
    const { records, summary } = await readInput(
      text(line(0, "a"), "", "garbage", line(1, "b", 429), line(2, "c", 503), line(3, "d", 429)),
    )
    expect(targets(records)).toEqual(["a", "b", "c", "d"])
    expect(records.map(({ line: number, file }) => [file, number])).toEqual([
      [0, 1],
      [0, 4],
      [0, 5],
      [0, 6],
    ])
    expect(summary).toEqual({
      files: [{ name: "standard input", format: "combined", lines: 6 }],
      ...{ lines: 6, requests: 4, unparsed: 1, skipped: 1, reordered: 0, reorderedByMs: 0, late: 0 },
      unparsedExamples: [{ file: "standard input", line: 3, text: "garbage" }],
      ...{ tooManyRequests: 2, resolutionMs: 1_000, fromMs: START, toMs: START + 3_000 },
      bytes: summary.bytes,
      allBytes: undefined,
    })
  })

  it("omits requests with a status of withoutStatus, and counts them as skipped", async () => {
    const log = text(line(0, "a"), line(1, "b", 429), line(2, "c", 503), line(3, "d", 429))
    const { records, summary } = await readInput(log, { withoutStatus: [429, 503] })
    expect(targets(records)).toEqual(["a"])
    expect(summary).toMatchObject({ requests: 1, skipped: 3, tooManyRequests: 0, toMs: START })
  })

  it("returns no requests for an empty log", async () => {
    const { records, summary } = await readInput("")
    expect(records).toEqual([])
    expect(summary).toMatchObject({ lines: 0, requests: 0, fromMs: undefined, toMs: undefined })
    expect((await readInput("\n\n")).records).toEqual([])
  })
})

describe("readLogs, for lines out of order,", () => {
  it("restores the order after any shuffle within the reorder time, and keeps the order of equal times", async () => {
    const shuffled = fc
      .array(
        fc.record({ ms: fc.integer({ min: 0, max: 30_000 }), delay: fc.integer({ min: 0, max: 4_000 }) }),
        {
          minLength: 1,
          maxLength: 60,
        },
      )
      .map((entries) => {
        const written = entries.map((each, id) => ({ ...each, id, writtenMs: each.ms + each.delay }))
        // Sort by time first, because lines with equal times must be written in order.
        const inOrder = [...written].sort((a, b) => a.ms - b.ms)
        const logged = [...inOrder].sort((a, b) => a.writtenMs - b.writtenMs)
        const expected = [...logged].sort((a, b) => a.ms - b.ms)
        return { logged, expected }
      })
    await fc.assert(
      fc.asyncProperty(shuffled, async ({ logged, expected }) => {
        const { records, summary } = await readInput(text(...logged.map(({ ms, id }) => exact(ms, id))), {
          ...EXACT,
          reorderMs: 4_000,
        })
        expect(summary.late).toBe(0)
        expect(ids(records)).toEqual(expected.map(({ id }) => `${id}`))
        expect(records.map(({ atMs }) => atMs - START)).toEqual(expected.map(({ ms }) => ms))
      }),
    )
  })

  it("counts the lines, and measures the largest distance", async () => {
    const { records, summary } = await readInput(text(line(5, "a"), line(3, "b"), line(9, "c"), line(8, "d")))
    expect(targets(records)).toEqual(["b", "a", "d", "c"])
    expect(summary).toMatchObject({ reordered: 2, reorderedByMs: 2_000, late: 0 })
  })

  it("gives a line after the reorder time the time of the previous line", async () => {
    // Use small chunks, because lines are released after each chunk.
    const lines = [line(0, "a"), line(1, "b"), line(20, "c"), line(30, "d"), line(1, "late"), line(31, "e")]
    const { records, summary } = await readInput(
      lines.map((each) => Buffer.from(`${each}\n`)),
      { reorderMs: 5_000 },
    )
    expect(targets(records)).toEqual(["a", "b", "c", "late", "d", "e"])
    expect(records.map(({ atMs }) => (atMs - START) / 1_000)).toEqual([0, 1, 20, 20, 30, 31])
    expect(summary).toMatchObject({ late: 1, reordered: 0 })
  })

  it("returns the same records, however the bytes are cut into chunks", async () => {
    // Line 2 of each minute is 25 s late, which is more than the reorder time.
    const log = text(...Array.from({ length: 40 }, (_, at) => line(at % 8 === 2 ? at - 25 : at, at)).slice(2))
    const whole = await readInput(Buffer.from(log))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: log.length })), async (cuts) => {
        const { records, summary } = await readInput(cutAt(Buffer.from(log), cuts))
        expect(records.map(facts)).toEqual(whole.records.map(facts))
        expect(summary).toEqual(whole.summary)
      }),
      { numRuns: 50 },
    )
  })

  it("never goes back in time, and returns each second in one array", async () => {
    const times = fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 1, maxLength: 80 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(times, { minLength: 1, maxLength: 3 }),
        fc.nat(8_000),
        async (logs, reorderMs) => {
          const paths = logs.map((log) => fileOf(text(...log.map((ms, id) => exact(ms, id)))))
          const { records, lists, summary } = await readAll(paths, { ...EXACT, reorderMs })
          const atMs = records.map((record) => record.atMs)
          expect(atMs).toEqual([...atMs].sort((a, b) => a - b))
          expect(summary.requests).toBe(logs.flat().length)
          const seconds = lists.map((list) => [...new Set(list.map((each) => Math.floor(each.atMs / 1_000)))])
          if (summary.late === 0) expect(seconds.flat()).toEqual([...new Set(seconds.flat())])
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe("several files", () => {
  it("are merged by time, and equal times are in the order of the files", async () => {
    const one = fileOf(text(line(0, "a0"), line(1, "a1"), line(1, "a1b"), line(4, "a4")))
    const two = fileOf(text(line(1, "b1"), line(3, "b3"), line(4, "b4")))
    const { records, summary } = await readAll([one, two])
    expect(targets(records)).toEqual(["a0", "a1", "a1b", "b1", "b3", "a4", "b4"])
    expect(records.map(({ file }) => file)).toEqual([0, 0, 0, 1, 1, 0, 1])
    expect(summary.files.map(({ lines }) => lines)).toEqual([4, 3])
    expect(summary.bytes).toBe(summary.allBytes)
  })

  it("whose times follow each other are read one after the other, whatever the order of their names", async () => {
    const days = [0, 1, 2].map((day) =>
      fileOf(text(...[0, 5, 60].map((at) => line(day * 3_600 + at, `${day}-${at}`)))),
    )
    const [first, second, third] = days as [string, string, string]
    const { records, summary } = await readAll([third, first, second])
    expect(targets(records)).toEqual([0, 1, 2].flatMap((day) => [0, 5, 60].map((at) => `${day}-${at}`)))
    expect(records.map(({ file }) => file)).toEqual([1, 1, 1, 2, 2, 2, 0, 0, 0])
    expect(summary.late).toBe(0)
  })

  it("give the same records as one sorted file", async () => {
    const entries = fc.array(fc.record({ ms: fc.integer({ min: 0, max: 100_000 }), file: fc.nat(2) }), {
      minLength: 1,
    })
    await fc.assert(
      fc.asyncProperty(entries, async (given) => {
        const written = given.map((each, id) => ({ ...each, id }))
        const sorted = [...written].sort((a, b) => a.ms - b.ms || a.file - b.file)
        const paths = [0, 1, 2].map((file) =>
          fileOf(text(...sorted.filter((each) => each.file === file).map(({ ms, id }) => exact(ms, id)))),
        )
        const { records } = await readAll(paths, EXACT)
        expect(ids(records)).toEqual(sorted.map(({ id }) => `${id}`))
      }),
      { numRuns: 40 },
    )
  })

  it("may have different formats, and the coarsest resolution counts", async () => {
    const json = fileOf(text(exact(1_500, "x"), exact(2_500, "y")))
    const { summary } = await readAll([json], EXACT)
    expect(summary.resolutionMs).toBe(1)
    const pino = JSON.stringify({
      level: 30,
      time: START + 1_501,
      req: { method: "GET", url: "/p" },
      responseTime: 1,
    })
    const mixed = await readAll([fileOf(text(pino)), fileOf(text(line(0, "a"), line(2, "b")))])
    expect(targets(mixed.records)).toEqual(["a", "p", "b"])
    expect(mixed.summary.files.map(({ format }) => format)).toEqual(["pino-http", "combined"])
    expect(mixed.summary.resolutionMs).toBe(1_000)
  })

  it("may be empty, or contain no request", async () => {
    const { records, summary } = await readAll([fileOf(""), fileOf(text(line(0, "a"))), fileOf("\n")])
    expect(targets(records)).toEqual(["a"])
    expect(summary.files.map(({ format }) => format)).toEqual([undefined, "combined", undefined])
  })

  it("may be pipes, which are read only once", async () => {
    const pipe = join(folder, "pipe")
    execFileSync("mkfifo", [pipe])
    const piped = fileOf(text(...Array.from({ length: 3_000 }, (_, at) => line(at, at))))
    const writer = spawn("sh", ["-c", 'cat "$1" > "$2"', "sh", piped, pipe])
    const written = once(writer, "close")
    const { records, summary } = await readAll([fileOf(text(line(9_000, "last"))), pipe])
    await written
    expect(targets(records)).toEqual([...Array.from({ length: 3_000 }, (_, at) => `${at}`), "last"])
    expect(summary.allBytes).toBe(undefined)
  })

  it("are not all open at the same time", async () => {
    const paths = Array.from({ length: 40 }, (_, at) => fileOf(text(line(at * 100, at))))
    // Count only these files, because other parts of the process also open and close files.
    const open = (): number =>
      readdirSync("/proc/self/fd").filter((fd) => linkOf(`/proc/self/fd/${fd}`)?.startsWith(folder)).length
    const fd = openSync(paths[0] ?? "", "r")
    expect(open()).toBe(1)
    closeSync(fd)
    const { readLogs } = await import("./read-logs.ts")
    let most = 0
    for await (const _ of readLogs(paths, {}, { stdin: process.stdin })) most = Math.max(most, open())
    expect(most).toBeLessThan(10)
    // A file is closed in the background.
    await vi.waitFor(() => expect(open()).toBe(0))
  })
})

describe("a file that begins out of order", () => {
  it("contains late lines if the other files have already passed their time", async () => {
    const one = fileOf(text(...Array.from({ length: 3_000 }, (_, at) => line(Math.floor(at / 10), at))))
    // Write more lines than the reader uses to find the start time of a file.
    const later = Array.from({ length: 1_500 }, (_, at) => line(100 + Math.floor(at / 100), "x"))
    const two = fileOf(text(...later, line(5, "early")))
    const { records, summary } = await readAll([one, two], { reorderMs: 30_000 })
    const early = records.find(({ url }) => url === "/early")
    expect(summary.late).toBe(1)
    expect(early?.atMs).toBeGreaterThan(START + 5_000)
    const times = records.map(({ atMs }) => atMs)
    expect(times).toEqual([...times].sort((a, b) => a - b))
  })
})

describe("compressed files", () => {
  const lines = Array.from({ length: 5_000 }, (_, at) => line(at, at))

  it("are recognized by their bytes", async () => {
    const path = fileOf(gzipSync(text(...lines)))
    const { records, summary } = await readAll([path])
    expect(targets(records)).toEqual(lines.map((_, at) => `${at}`))
    expect(summary.bytes).toBe(summary.allBytes)
    const input = await readInput(
      Array.from(gzipSync(text(...lines.slice(0, 50))), (byte) => Uint8Array.of(byte)),
    )
    expect(input.records).toHaveLength(50)
  })

  it("may consist of several members", async () => {
    const parts = [lines.slice(0, 10), lines.slice(10, 20)].map((part) => gzipSync(text(...part)))
    expect((await readAll([fileOf(Buffer.concat(parts))])).records).toHaveLength(20)
  })

  it("that are truncated or damaged are errors", async () => {
    const whole = gzipSync(text(...lines))
    await expect(readAll([fileOf(whole.subarray(0, whole.length - 20))])).rejects.toThrow(
      "truncated gzip file",
    )
    await expect(readInput(whole.subarray(0, 8))).rejects.toThrow("standard input is a truncated gzip file")
    const damaged = Buffer.from(whole)
    damaged.fill(0xff, 300, 400)
    await expect(readAll([fileOf(damaged)])).rejects.toThrow("damaged gzip file: copy it again")
  })

  it.each([
    ["zstd", [0x28, 0xb5, 0x2f, 0xfd, 1], "zstdcat"],
    ["xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a], "xzcat"],
    ["bzip2", [0x42, 0x5a, 0x68, 0x39], "bzcat"],
    ["zip", [0x50, 0x4b, 3, 4], "unpack"],
    ["UTF-16", [0xff, 0xfe, 65, 0], "UTF-8"],
  ])("that cannot be read cause an error that says what to do: %s", async (name, bytes, advice) => {
    const error = await readAll([fileOf(Uint8Array.from(bytes))]).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(LogError)
    expect(String(error)).toMatch(new RegExp(`${name}.*${advice}`))
  })
})

describe("unusual bytes", () => {
  it("are removed around lines: BOM, carriage returns and leading NUL bytes", async () => {
    const log = `\ufeff${line(0, "a")}\r\n\r\n\0\0\0${line(1, "b")}\r\n${line(2, "c")}`
    const { records, summary } = await readInput(log)
    expect(targets(records)).toEqual(["a", "b", "c"])
    expect(records[0]?.remoteAddress).toBe("192.0.2.1")
    expect(summary).toMatchObject({ lines: 4, skipped: 1, unparsed: 0 })
    const json = await readInput(`\ufeff${exact(0, "é")}`, EXACT)
    expect(ids(json.records)).toEqual(["é"])
  })

  it("in UTF-8 may be cut anywhere", async () => {
    const log = Buffer.from(text(exact(0, "é€😀"), exact(1, "ü")))
    for (let cut = 0; cut <= log.length; cut++) {
      expect(ids((await readInput(cutAt(log, [cut]), EXACT)).records)).toEqual(["é€😀", "ü"])
    }
  })

  it("are not stored beyond 64 kB of a line, which is then unparsed", async () => {
    const long = (length: number): string => line(1, "x".repeat(length - line(1, "").length))
    for (const [length, unparsed] of [
      [MAX_LINE_BYTES, 0],
      [MAX_LINE_BYTES + 1, 1],
      [5 * MAX_LINE_BYTES, 1],
    ] as const) {
      const log = Buffer.from(text(line(0, "a"), long(length), line(2, "b")))
      for (const chunk of [1_000, 64 * 1024, log.length]) {
        const cuts = Array.from({ length: Math.floor(log.length / chunk) }, (_, at) => (at + 1) * chunk)
        const { summary } = await readInput(cutAt(log, cuts))
        expect(summary).toMatchObject({ lines: 3, unparsed, requests: 3 - unparsed })
        for (const { text: example } of summary.unparsedExamples) expect(example.length).toBeLessThan(200)
      }
    }
  })
})

describe("errors", () => {
  const messageOf = async (
    paths: readonly string[],
    options = {},
    input: Uint8Array[] = [],
  ): Promise<string> => {
    try {
      await readAll(paths, options, input)
    } catch (error) {
      expect(error).toBeInstanceOf(LogError)
      return (error as Error).message
    }
    return "no error"
  }

  it("explain what is wrong with a path", async () => {
    expect(await messageOf([join(folder, "none.log")])).toMatch(/none\.log does not exist: correct the path/)
    mkdirSync(join(folder, "sub"), { recursive: true })
    expect(await messageOf([join(folder, "sub")])).toMatch(/is a folder: give its files/)
    expect(await messageOf(["-", "-"])).toMatch(/standard input is given twice/)
    const once = fileOf(text(line(0)))
    symlinkSync(once, `${once}.link`)
    expect(await messageOf([once, `${once}.link`])).toMatch(/have the same lines: leave out one of them/)
  })

  it("name the files that contain the same lines, compressed or not, complete or not", async () => {
    const lines = Array.from({ length: 3_000 }, (_, at) => line(at, at))
    const [log, compressed, begun] = [
      fileOf(text(...lines)),
      fileOf(gzipSync(text(...lines))),
      fileOf(text(...lines.slice(0, 2_000))),
    ]
    const other = fileOf(text(...lines.slice(0, 2_000), line(2_001, "other")))
    const days = fileOf(text(line(9_000, "next")))
    const message = (one: string, two: string): string =>
      `${one} and ${two} have the same lines: leave out one of them, or its requests count twice`
    expect(await messageOf([log, compressed])).toBe(message(log, compressed))
    expect(await messageOf([days, compressed, other, log])).toBe(message(compressed, log))
    expect(await messageOf([log, begun])).toBe(message(log, begun))
    expect(await messageOf([begun, compressed])).toBe(message(begun, compressed))
    const [short, grown] = [fileOf(text(...lines.slice(0, 10))), fileOf(text(...lines.slice(0, 15)))]
    expect(await messageOf([short, grown])).toBe(message(short, grown))
    expect(await messageOf([fileOf(""), fileOf(""), log, other, days])).toBe("no error")
  })

  it("show the first line of an unknown format", async () => {
    const log = fileOf(text("2025-06-03 08:00:00 GET /a", "2025-06-03 08:00:01 GET /b"))
    expect(await messageOf([log])).toMatch(
      /the format of its lines is not known: .*--format\n2025-06-03 08:00:00 GET/,
    )
    expect(await messageOf([fileOf(exact(0, "a"))])).toMatch(
      /say where the fields of these JSON lines are, such as --map/,
    )
  })

  it("list the accepted values of a wrong option", async () => {
    const log = fileOf(text(line(0)))
    expect(await messageOf([log], { format: "combine" })).toMatch(
      /"combine" is not a format: .*common, vhost_combined/,
    )
    expect(await messageOf([log], { map: { user_id: "user" } })).toMatch(
      /--map user_id=user: the format "combined" has no "user"; it has remote_addr, remote_user/,
    )
    expect(await messageOf([log], { map: { "body:email": "x" } })).toMatch(
      /--map cannot fill "body:email": expected ip, time/,
    )
    expect(await messageOf([log], { map: { user_id: "" } })).toMatch(/--map user_id= has no source/)
    expect(await messageOf([log], { format: "json" })).toMatch(
      /add, for example, --map time=ts --map ip=client.addr/,
    )
    expect(await messageOf([log], { format: "$remote_addr" })).toMatch(/has no time: it needs \$msec/)
    expect(await messageOf([log], { format: "$msec $scheme$host" })).toMatch(
      /nothing separates \$scheme and \$host/,
    )
    expect(await messageOf([log], { format: "log_format x escape=none '$msec';" })).toMatch(
      /escape=none cannot be read/,
    )
    expect(await messageOf([log], { format: "%h %{%A}t" })).toMatch(
      /The time %\{%A\}t cannot be read: use %t/,
    )
  })

  it("report a stream that fails", async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(text(line(0)))
      throw new Error("the pipe broke")
    }
    const { readLogs } = await import("./read-logs.ts")
    const read = async (): Promise<void> => {
      for await (const _ of readLogs(["-"], {}, { stdin: failing() }));
    }
    await expect(read()).rejects.toThrow("standard input cannot be read: the pipe broke")
  })
})

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...new Set([...cuts, bytes.length])].sort((a, b) => a - b)
  return ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end))
}

/** Returns the target of a symbolic link, undefined if the link no longer exists. */
function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
