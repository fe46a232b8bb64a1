import { execFile } from "node:child_process"
import { describe, expect, it } from "vitest"

/** Runs a program that ends with an error. Resolves to Node's output about the error. */
function printedBy(program: string): Promise<string> {
  const argv = ["--import", "tsx", "--input-type=module", "--eval", program]
  return new Promise((resolve) => {
    execFile(process.execPath, argv, { env: { ...process.env, NODE_OPTIONS: "" } }, (_error, _out, printed) =>
      resolve(printed),
    )
  })
}

const ERRORS = JSON.stringify(new URL("../packages/core/src/ground/errors.ts", import.meta.url).href)
const RULES = JSON.stringify(
  new URL("../packages/core/src/rules/documents/rule-document.ts", import.meta.url).href,
)

describe.each([
  ["uncaught", "throw error"],
  ["rejected without a handler", "await Promise.reject(error)"],
  ["logged", "console.error(error)"],
])("an error that is %s", (_how, show) => {
  it.each([
    [
      "InvalidOptionError",
      `import { InvalidOptionError } from ${ERRORS}
       const error = new InvalidOptionError([
         { path: "limit", message: "0 is not a limit", accepted: "1 or more" },
         { path: "window", message: "is missing" },
       ])`,
      [
        "limit: 0 is not a limit; accepted: 1 or more",
        "0 is not a limit",
        "window: is missing",
        "is missing",
      ],
    ],
    [
      "InvalidRuleError",
      `import { parseRuleDocument } from ${RULES}
       const error = await (async () => parseRuleDocument({ rules: [{ limit: 0, window: "5 minuts" }] }))().catch((e) => e)`,
      ["0 is not a limit", "rules[0].window", '"5 minuts" is not a window'],
    ],
  ])("is printed with each problem once: %s", async (name, make, problems) => {
    const printed = await printedBy(`${make}\n${show}`)
    const counts = problems.map((problem) => [problem, printed.split(problem).length - 1])
    expect(counts, printed).toEqual(problems.map((problem) => [problem, 1]))
    expect(printed).toContain(name)
    expect(printed).toMatch(/code: 'SLUICE_INVALID_(OPTION|RULE)'/)
  })
})
