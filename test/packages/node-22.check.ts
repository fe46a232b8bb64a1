import { describeAsInstalled } from "./as-installed.ts"
import { NODE_22 } from "./nodes.ts"

describeAsInstalled(NODE_22, ["module"])
