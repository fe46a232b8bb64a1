import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire"
import { describe, expect, it, vi } from "vitest"
import { WireBuffer } from "./wire-buffer.ts"

/** Sizes around the initial size of a buffer. The message is nested several levels deep. */
const SIZES = Array.from({ length: 60 }, (_, index) => 970 + index)
const DEEP = 12

describe("a wire buffer that grows to the size of its message", () => {
  it.each([
    [
      "bytes",
      (buffer: WireBuffer, size: number) => buffer.bytes(2, Buffer.alloc(size, 7)),
      (writer: BinaryWriter, size: number) =>
        writer.tag(2, WireType.LengthDelimited).bytes(Buffer.alloc(size, 7)),
    ],
    [
      "text with three bytes per character",
      (buffer: WireBuffer, size: number) => buffer.string(2, "語".repeat(size / 3)),
      (writer: BinaryWriter, size: number) =>
        writer.tag(2, WireType.LengthDelimited).string("語".repeat(size / 3)),
    ],
    [
      "numbers",
      (buffer: WireBuffer, size: number) => {
        for (let at = 0; at < size; at += 9) buffer.uint(2, Number.MAX_SAFE_INTEGER)
      },
      (writer: BinaryWriter, size: number) => {
        for (let at = 0; at < size; at += 9) writer.tag(2, WireType.Varint).uint64(2n ** 53n - 1n)
      },
    ],
  ])("encodes %s like the protobuf library", (_what, write, writeByLibrary) => {
    for (const size of SIZES) {
      const buffer = new WireBuffer()
      const writer = new BinaryWriter()
      const begun: number[] = []
      for (let depth = 0; depth < DEEP; depth++) {
        begun.push(buffer.begin(1))
        writer.tag(1, WireType.LengthDelimited).fork()
      }
      write(buffer, size)
      writeByLibrary(writer, size)
      for (const at of begun.toReversed()) {
        buffer.end(at)
        writer.join()
      }
      expect(buffer.written().toString("hex")).toBe(Buffer.from(writer.finish()).toString("hex"))
    }
  })
})

it("a wire buffer releases the memory of a long message", async () => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  const usedBytes = (): number => {
    collect()
    return process.memoryUsage().arrayBuffers
  }
  const long = Buffer.alloc(1_000_000, 7)
  const before = usedBytes()
  const buffers = Array.from({ length: 50 }, () => new WireBuffer())
  for (const buffer of buffers) {
    buffer.bytes(1, long)
    expect(buffer.written()).toHaveLength(1_000_004)
  }
  // Wait, because Node frees array buffers some time after their collection. Buffers that kept all their memory would
  // use 100 MB.
  await vi.waitFor(() => expect(usedBytes() - before).toBeLessThan(25_000_000), {
    timeout: 10_000,
    interval: 500,
  })
  for (const buffer of buffers) {
    buffer.string(1, "short")
    expect(buffer.written().toString("latin1")).toBe("\n\x05short")
  }
})
