import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** A program without a library: it has no entry point, so there are no declarations and no types to check. */
const config: UserConfig = { ...base, entry: ["src/main.ts"], dts: false, attw: false }
export default config
