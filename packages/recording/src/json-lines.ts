import { closeSync, openSync } from "node:fs"
import { appendFile } from "node:fs/promises"
import type { Writable } from "node:stream"
import { InvalidOptionError } from "@sluice/core"
import { show, textOf } from "@sluice/core/kit"
import type { DecisionSink } from "./recorded-decision.ts"

/** Streams that already have a listener for errors, because several sinks may write to one stream. */
const LISTENED = new WeakSet<Writable>()

/** Only the user of the process may read the file, because records may be personal data. */
const MODE = 0o600

/**
 * Returns a sink that appends each record as a line of JSON to a file or a stream. If the file does not exist, it is
 * created so that only the user of the process can read it. The file is opened for each batch, so it may be renamed
 * at any time. The sink does not close a stream. Errors of a stream count as lost records, and no longer end the
 * process.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { jsonLinesSink, recordDecisions } from "@sluice/recording"
 *
 * const limiter = createLimiter({ limit: 100, window: "1 minute" })
 * const recorder = recordDecisions(limiter, jsonLinesSink(process.stdout))
 * ```
 * @throws {@link InvalidOptionError} if the file cannot be opened.
 */
export function jsonLinesSink(destination: string | URL | Writable): DecisionSink {
  const append = appenderOf(destination)
  let separator = ""
  return async (records) => {
    const lines = records.map((record) => `${JSON.stringify(record)}\n`).join("")
    const text = separator + lines
    // A failed write may leave an incomplete line, so the next write begins with a line break.
    separator = "\n"
    await append(text)
    separator = ""
  }
}

function appenderOf(destination: unknown): (text: string) => Promise<void> {
  if (typeof destination === "string" || destination instanceof URL) {
    requireFile(destination)
    return (text) => appendFile(destination, text, { mode: MODE })
  }
  const stream = destination as Writable | null | undefined
  if (typeof stream?.write !== "function" || typeof stream.on !== "function") {
    const message = `${show(destination)} is not a destination`
    throw new InvalidOptionError([
      { path: "destination", message, accepted: "the path of a file, or a writable stream" },
    ])
  }
  // Without a listener, an error of the stream would end the process. The listener can ignore the error, because each
  // failed write reports it, too.
  if (!LISTENED.has(stream)) stream.on("error", () => undefined)
  LISTENED.add(stream)
  return (text) =>
    new Promise((resolve, reject) => {
      stream.write(text, (error) => (error ? reject(error) : resolve()))
    })
}

function requireFile(path: string | URL): void {
  try {
    closeSync(openSync(path, "a", MODE))
  } catch (error) {
    const message = `${show(String(path))} cannot be opened: ${textOf(error)}`
    throw new InvalidOptionError([
      { path: "destination", message, accepted: "a file that this process can write" },
    ])
  }
}
