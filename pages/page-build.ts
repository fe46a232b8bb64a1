import type { UserConfig } from "tsdown"
import base, { billOfMaterials } from "../tsdown.config.ts"
import { pageTexts } from "./page-texts.ts"

/** Packages that pages contain. The libraries themselves do not load them. */
const BUILT_IN = ["uplot"]

/** Returns the build of a package that contains an HTML page. `folder` is the package's own folder. */
export function pageBuild(folder: string): UserConfig {
  return {
    ...base,
    plugins: [
      base.plugins,
      pageTexts(),
      billOfMaterials(BUILT_IN.map((name) => `${folder}/node_modules/${name}/package.json`)),
    ],
    // Do not name the file "license". pnpm would mistake it for the package's own license, and leave that out.
    copy: BUILT_IN.map((name) => ({
      from: `node_modules/${name}/LICENSE`,
      to: "dist",
      rename: `${name}-MIT.txt`,
    })),
  }
}
