import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createLimiter, type Limiter } from "@sluice/core"
import type { DecisionRecorder, RecordedDecision } from "@sluice/recording"
import { expect, it, onTestFinished, vi } from "vitest"
import type { Block } from "../docs/blocks.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { runTypeScript } from "../docs/typescript/run.ts"

const [toFile, line, toServer] = blocksTestedBy(
  "test/recording/guide.test.ts",
  "docs/production/recording.md",
  3,
) as [Block, Block, Block]

/** Returns the code block, with its path replaced by a path in a folder of the test. Also returns this path. */
async function inFolder(block: Block): Promise<{ readonly block: Block; readonly path: string }> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-records-"))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, "decisions.jsonl")
  return { block: { ...block, text: block.text.replace('"decisions.jsonl"', JSON.stringify(path)) }, path }
}

it("the guide's app, when it is stopped, writes the line that the guide shows", async () => {
  const { block, path } = await inFolder(toFile)
  const stopped = vi.spyOn(process, "once").mockReturnValue(process)
  const made = await runTypeScript(block)
  const [[event, stop] = []] = stopped.mock.calls
  stopped.mockRestore()
  await (made.limiter as Limiter).decide({ remoteAddress: "192.0.2.7" })
  expect(event).toBe("SIGTERM")
  await (stop as () => Promise<void>)()
  const shown: RecordedDecision = JSON.parse(line.text)
  const written: RecordedDecision = JSON.parse(await readFile(path, "utf8"))
  expect(written).toEqual({
    ...{ ...shown, timeMs: expect.any(Number) },
    id: expect.stringMatching(/^[0-9a-f]{16}-0$/),
  })
  expect((made.recorder as DecisionRecorder).status).toMatchObject({ waiting: 0, written: 1 })
})

it("the guide's own sink sends batches to a server", async () => {
  const limiter = createLimiter({ limit: 1, window: "1 minute" })
  const sent = vi.spyOn(globalThis, "fetch").mockResolvedValue(new Response())
  const { recorder } = await runTypeScript(toServer, { limiter })
  await limiter.decide({ remoteAddress: "192.0.2.7" })
  await (recorder as DecisionRecorder).close()
  const bodies = sent.mock.calls.map(([, request]) => JSON.parse(String(request?.body)))
  sent.mockRestore()
  expect(bodies).toMatchObject([[{ allowed: true, checks: [{ partition: "192.0.2.7" }] }]])
})
