import type { UserConfig } from "tsdown"
import { pageBuild } from "../../pages/page-build.ts"

const config: UserConfig = pageBuild(import.meta.dirname)
export default config
