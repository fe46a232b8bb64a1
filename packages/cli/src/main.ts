import { EXIT } from "./outcome.ts"
import { run } from "./run.ts"

// Disable the SDK's warning about Node versions, because it is irrelevant to users of the rules.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true"

// The reader of the output may close the stream early, as in `sluice rules list | head -1`.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit()
    // If standard error itself has failed, only the exit code can report it.
    if (stream === process.stdout)
      process.stderr.write(`error: the output cannot be written: ${error.message}\n`)
    process.exit(EXIT.usage)
  })
}

// Set the exit code without exiting, because output to a pipe may still be pending.
process.exitCode = await run(process.argv.slice(2), process)
