import { describeAsInstalled } from "./as-installed.ts"
import { NODE_20 } from "./nodes.ts"

describeAsInstalled(NODE_20)
