import { describeAsInstalled } from "./as-installed.ts"
import { NODE_20 } from "./nodes.ts"
import { MODULE_SYSTEMS } from "./project.ts"

// A dependency of NestJS 12 needs Node 22.
describeAsInstalled(
  NODE_20,
  MODULE_SYSTEMS,
  ["common", "core", "platform-express"].map((name) => `@nestjs/${name}@11.0.0`),
)
