import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** The scripts are part of the build, without their comments. */
const config: UserConfig = {
  ...base,
  loader: { ".lua": "text" },
  plugins: [
    base.plugins,
    {
      name: "lua-without-comments",
      transform: {
        filter: { id: /\.lua$/ },
        // Keep USE and FORMULA lines. scripts.ts uses them to assemble the scripts. Lua needs no blanks before a line.
        handler: (script) => script.replace(/^ *--(?! (?:USE|FORMULA) ).*\n/gm, "").replace(/^ +|^\n/gm, ""),
      },
    },
  ],
}
export default config
