import { EXIT } from "./outcome.ts"
import { run } from "./run.ts"

// Which versions of Node the AWS SDK is going to support is not what a user of the rules has asked.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true"

// Whoever reads the output may stop reading: `sluice rules list | head -1`.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit()
    // Where that is standard error, the exit code alone says so.
    if (stream === process.stdout)
      process.stderr.write(`error: what was found cannot be written: ${error.message}\n`)
    process.exit(EXIT.usage)
  })
}

// The code is set, not exited with: what is written to a pipe may not have left yet.
process.exitCode = await run(process.argv.slice(2), process)
