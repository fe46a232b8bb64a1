import { describe } from "vitest"
import { describeAsInstalled } from "./as-installed.ts"
import { NODE_24 } from "./nodes.ts"
import { itWeighsLittle } from "./sizes.ts"

const project = describeAsInstalled(NODE_24, ["commonjs"])

// Measure the size here, because this file installs all packages anyway. The result is the same on every Node.
describe("an install", () => itWeighsLittle(project))
