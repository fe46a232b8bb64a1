import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** The program is built in addition to the library, and is not an entry point of the package. */
const config: UserConfig = { ...base, entry: ["src/index.ts", "src/main.ts"] }
export default config
