import { readFileSync } from "node:fs"
import { run } from "./program/run.ts"

// Which versions of Node the AWS SDK is going to support is not what an operator has asked.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true"

const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8")
await run(process.argv.slice(2), (JSON.parse(manifest) as { readonly version: string }).version)
