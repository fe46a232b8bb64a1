import type { PackageEntry } from "../../../docs/pictures/packages.ts"

/** Returns entries for packages from their imports: `{ cli: "core logs" }`. */
export const entries = (imports: Readonly<Record<string, string>>): PackageEntry[] =>
  Object.entries(imports).map(([name, names]) => ({
    name,
    job: "does one thing",
    imports: names.split(" ").filter((each) => each !== ""),
  }))

/** Twenty packages, whose picture has 30 arrows. */
export const TWENTY_PACKAGES: readonly PackageEntry[] = entries({
  cli: "core redis rules dynamodb logs otel",
  service: "core redis scale rules dynamodb otel recording",
  gateway: "service client",
  nestjs: "core express fastify",
  "express-rate-limit-store": "core redis express",
  logs: "core rules",
  dynamodb: "core rules",
  contracts: "core rules",
  board: "otel recording client",
  redis: "core",
  scale: "core",
  rules: "core",
  otel: "core",
  recording: "core",
  express: "core",
  fastify: "core",
  koa: "core",
  fetch: "core",
  core: "",
  client: "",
})
