import { readFileSync } from "node:fs"
import { expect, it } from "vitest"

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8")
const { packageManager, scripts } = JSON.parse(read("package.json"))

it("CI runs the README's test command and check, and nothing that a contributor would not", () => {
  const steps = [...read(".ci/run").matchAll(/^step "[^"]+" (.+)$/gm)].map(([, command]) => command)
  const commands = ["test", "check"].map((script) => `npx -y ${packageManager} ${script}`)
  expect(steps).toEqual(commands)
  expect(read("README.md")).toContain(commands[0])
})

it("check runs every script that can say no, but for the tests", () => {
  const called = scripts.check.split(" && ").map((command: string) => command.replace(/^pnpm (run )?/, ""))
  expect(called).toEqual([
    ...["build", "typecheck", "lint", "architecture", "reference:check", "packages", "demo"],
  ])
  for (const name of called) expect(scripts).toHaveProperty([name])
})
