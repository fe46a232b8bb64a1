import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** The core has a door for each back end that needs a client of the app's. */
const config: UserConfig = {
  ...base,
  entry: ["src/index.ts", "src/redis.ts", "src/dynamodb.ts", "src/otel.ts"],
  loader: { ".lua": "text" },
}
export default config
