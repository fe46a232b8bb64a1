import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** Packages of which the core needs only a small part. Loading their many files would take longer than running that part. */
const BUILT_IN = ["content-type", "negotiator", "structured-headers", "valibot"]

/** The core has a separate entry point for each back end that uses a client of the app. */
const config: UserConfig = {
  ...base,
  entry: ["src/index.ts", "src/redis.ts", "src/dynamodb.ts", "src/otel.ts"],
  loader: { ".lua": "text" },
  // The packed core must stay small. Names and lines stay as well, so that stack traces can be read.
  minify: { compress: true, mangle: false, codegen: false },
  plugins: [
    {
      // The packed core must stay small. The names of bundled packages stay, for a test that looks for them.
      name: "no-names-of-sources",
      renderChunk: (code: string) =>
        code.replace(/^\/\/#region (?!.*node_modules).*\n([\s\S]*?)^\/\/#endregion\n/gm, "$1"),
    },
    {
      name: "lua-without-comments",
      transform: {
        filter: { id: /\.lua$/ },
        // Keep USE and FORMULA lines. scripts.ts uses them to assemble the scripts. Lua needs no blanks before a line.
        handler: (script) => script.replace(/^ *--(?! (?:USE|FORMULA) ).*\n/gm, "").replace(/^ +|^\n/gm, ""),
      },
    },
  ],
  deps: { alwaysBundle: BUILT_IN, onlyBundle: BUILT_IN },
  // Do not name the file "license". pnpm would mistake it for the package's own license, and leave that out.
  copy: BUILT_IN.map((name) => ({
    from: `node_modules/${name}/LICENSE${name === "valibot" ? ".md" : ""}`,
    to: "dist",
    rename: `${name}-MIT.txt`,
  })),
}
export default config
