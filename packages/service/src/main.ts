import { readFileSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { run } from "./program/run.ts"

// Which versions of Node the AWS SDK is going to support is not what an operator has asked.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true"

// Calls that are all under way while memory is collected look as if they lived for long. V8 would make what they consist of old from
// the start, for as long as the process lives, and so keep each call until a full collection: decision 0025.
setFlagsFromString("--no-allocation-site-pretenuring")

// Help that nobody reads to its end, `sluice-service --help | head -1`, or that a full disk does not take, is no fault. The log does without
// these streams.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined)

const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8")
await run(process.argv.slice(2), (JSON.parse(manifest) as { readonly version: string }).version)
