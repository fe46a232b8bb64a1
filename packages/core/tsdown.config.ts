import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** The core has a door for each back end that needs a client of the app's. */
const config: UserConfig = {
  ...base,
  entry: ["src/index.ts", "src/redis.ts", "src/dynamodb.ts", "src/otel.ts"],
  loader: { ".lua": "text" },
  // As a package it is a hundred modules, half of them messages in other languages: loading them took most of an import.
  deps: { alwaysBundle: ["zod"], onlyBundle: ["zod"] },
  // Not named "license": pnpm would take it for the package's own, and leave that out.
  copy: [{ from: "node_modules/zod/LICENSE", to: "dist", rename: "zod-MIT.txt" }],
}
export default config
