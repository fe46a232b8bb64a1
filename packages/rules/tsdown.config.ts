import type { UserConfig } from "tsdown"
import base from "../../tsdown.config.ts"

/** The YAML library is loaded by `require`, on the first file that needs it. */
const config: UserConfig = {
  ...base,
  plugins: [
    base.plugins,
    {
      // Bundled into an ES module, the `require` of this file would become `createRequire(import.meta.url)`.
      name: "yaml-by-require",
      resolveId: (id) => (id === "./yaml.cjs" ? { id, external: "relative" } : undefined),
    },
  ],
  copy: [{ from: "src/text/yaml.cjs", to: "dist" }],
}
export default config
