import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** The program beside the library: it has no door of its own. */
const config: UserConfig = { ...base, entry: ["src/index.ts", "src/main.ts"] }
export default config
