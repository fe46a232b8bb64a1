import { setFlagsFromString } from "node:v8"
import manifest from "../package.json" with { type: "json" }
import { run } from "./program/run.ts"

// Suppress the AWS SDK's warning about the Node versions that it will support, because operators do not need this
// warning.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true"

// Calls that are in flight during a garbage collection look long-lived. V8 would therefore allocate the objects of
// later calls in old space, where they remain until a full collection. See decision 0011.
setFlagsFromString("--no-allocation-site-pretenuring")

// Ignore failed writes to these streams, because a reader may stop early (`sluice-service --help | head -1`), or the
// disk may be full. The log does not use these streams.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined)

await run(process.argv.slice(2), manifest.version)
