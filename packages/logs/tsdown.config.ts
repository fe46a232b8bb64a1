import type { UserConfig } from "tsdown"
import base, { billOfMaterials } from "../../tsdown.config.ts"
import { reportTexts } from "./report-texts.ts"

/** Packages that the report of a replay contains. The library itself does not load them. */
const BUILT_IN = ["uplot"]

const config: UserConfig = {
  ...base,
  plugins: [
    base.plugins,
    reportTexts(),
    billOfMaterials(BUILT_IN.map((name) => `${import.meta.dirname}/node_modules/${name}/package.json`)),
  ],
  // Do not name the file "license". pnpm would mistake it for the package's own license, and leave that out.
  copy: BUILT_IN.map((name) => ({
    from: `node_modules/${name}/LICENSE`,
    to: "dist",
    rename: `${name}-MIT.txt`,
  })),
}
export default config
