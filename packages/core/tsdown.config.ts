import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** Small parts of packages of many files: finding and reading those takes longer than the code that is used of them. */
const BUILT_IN = ["content-type", "negotiator", "structured-headers", "valibot"]

/** The core has a door for each back end that needs a client of the app's. */
const config: UserConfig = {
  ...base,
  entry: ["src/index.ts", "src/redis.ts", "src/dynamodb.ts", "src/otel.ts"],
  loader: { ".lua": "text" },
  plugins: [
    {
      name: "lua-without-comments",
      transform: {
        filter: { id: /\.lua$/ },
        // USE and FORMULA are no comments: scripts.ts puts the scripts together by them.
        handler: (script) => script.replace(/^ *--(?! (?:USE|FORMULA) ).*\n/gm, ""),
      },
    },
  ],
  deps: { alwaysBundle: BUILT_IN, onlyBundle: BUILT_IN },
  // Not named "license": pnpm would take it for the package's own, and leave that out.
  copy: BUILT_IN.map((name) => ({
    from: `node_modules/${name}/LICENSE${name === "valibot" ? ".md" : ""}`,
    to: "dist",
    rename: `${name}-MIT.txt`,
  })),
}
export default config
