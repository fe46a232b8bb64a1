/** A package of Sluice, as docs/pictures/packages.svg shows it. */
export interface PackageEntry {
  /** The name without `@sluice/`. */
  readonly name: string
  /** The task of the package in a few words. */
  readonly job: string
  /** The packages of Sluice that it needs at run time. A test compares them with the code and the package.json. */
  readonly imports: readonly string[]
}

/** All packages, in any order. Their imports decide where they are in the picture. */
export const PACKAGES: readonly PackageEntry[] = [
  { name: "express", job: "middleware for Express", imports: ["core"] },
  { name: "fastify", job: "plugin for Fastify", imports: ["core"] },
  { name: "koa", job: "middleware for Koa", imports: ["core"] },
  { name: "nestjs", job: "module for NestJS", imports: ["core"] },
  { name: "fetch", job: "for Hono, Next.js, Bun, Deno", imports: ["core"] },
  { name: "express-rate-limit-store", job: "counts with Sluice", imports: ["core", "redis"] },
  { name: "dynamodb", job: "rules in a table, and their registry", imports: ["core", "rules"] },
  { name: "rules", job: "rules that change, in files or elsewhere", imports: ["core"] },
  { name: "scale", job: "leases, mirrors, write-back", imports: ["core"] },
  { name: "redis", job: "counters that all processes share", imports: ["core"] },
  { name: "recording", job: "records of decisions", imports: ["core"] },
  { name: "otel", job: "metrics by OpenTelemetry", imports: ["core"] },
  { name: "dashboard", job: "who is refused now", imports: ["core"] },
  {
    name: "service",
    job: "decides for gateways",
    imports: ["core", "dashboard", "dynamodb", "otel", "redis", "rules", "scale"],
  },
  { name: "logs", job: "replays access logs", imports: ["core", "rules"] },
  {
    name: "cli",
    job: "the command sluice",
    imports: ["core", "dashboard", "dynamodb", "logs", "redis", "rules"],
  },
  { name: "contracts", job: "tests your own stores and sources", imports: ["core", "rules"] },
  { name: "core", job: "decides and counts requests", imports: [] },
  { name: "client", job: "a fetch that paces itself", imports: [] },
]
