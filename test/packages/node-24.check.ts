import { describe } from "vitest"
import { describeAsInstalled } from "./as-installed.ts"
import { NODE_24 } from "./nodes.ts"
import { itWeighsLittle } from "./sizes.ts"

const project = describeAsInstalled(NODE_24, ["commonjs"])

// Here everything is already installed. The result is the same on every Node.
describe("an install", () => itWeighsLittle(project))
