import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** An entry point for each framework, so that an app installs only its own. */
const config: UserConfig = {
  ...base,
  entry: ["src/index.ts", "src/elysia.ts", "src/hono.ts", "src/sveltekit.ts"],
}
export default config
