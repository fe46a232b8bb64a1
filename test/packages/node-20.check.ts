import { describeAsInstalled } from "./as-installed.ts"
import { NODE_20 } from "./nodes.ts"
import { MODULE_SYSTEMS } from "./project.ts"

describeAsInstalled(NODE_20, MODULE_SYSTEMS)
