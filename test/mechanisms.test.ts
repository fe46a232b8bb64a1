import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("..", import.meta.url))

/** The code of the packages, without comments, by the path of the file. */
const sources = new Map(
  execFileSync("git", ["ls-files", "packages/*/src/*.ts"], { cwd: root, encoding: "utf8" })
    .trim()
    .split("\n")
    .filter((file) => !/\.test\.ts$|\/testing\/|\/gen\/|^packages\/contracts\//.test(file))
    .map((file) => [
      file,
      readFileSync(`${root}${file}`, "utf8").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, ""),
    ]),
)

/** Returns the files whose code matches, below `packages`. */
function filesWith(pattern: RegExp): readonly string[] {
  return [...sources]
    .filter(([, code]) => pattern.test(code))
    .map(([file]) => file.replace(/^packages\//, ""))
    .sort()
}

/** The maximum number of places that create an InvalidOptionError themselves. */
const MOST_REJECTIONS = 54

// Shorten these lists when you can. A new file in a list is another mechanism for something that an existing
// mechanism already does.
describe("the packages have one way to", () => {
  it("wait with a timeout: the six tools of ground/time.ts, and separate sockets and files", () => {
    const time = sources.get("packages/core/src/ground/time.ts") as string
    const exported = [...time.matchAll(/^export (?:async )?function (\w+)/gm)].map(
      ([, name]) => name as string,
    )
    const noWaits = ["outsideRequests", "soon", "onAbort", "ignore"]
    expect(exported.filter((name) => !noWaits.includes(name)).sort()).toEqual([
      "after",
      "beforeDeadline",
      "keepingAlive",
      "setTimer",
      "unlessAborted",
      "waitOf",
    ])
    expect(
      filesWith(/\b(?:setTimeout|setInterval)\(|Promise\.race\(|AbortSignal\.(?:any|timeout)\((?!5_000)/),
    ).toEqual([
      // This file calls the service once, from the command line.
      "cli/src/service-call.ts",
      // The client imports no other package.
      ...["client/src/gate.ts", "client/src/problem.ts", "client/src/watch.ts"],
      "core/src/ground/time.ts",
      // This file takes samples until the process ends.
      "core/src/limiter/spare-capacity/monitor.ts",
      // This file runs in the browser.
      "dashboard/src/page/connection.ts",
      // This file combines two signals, and waits for neither.
      "dynamodb/src/scan-items.ts",
      // This file bounds a connection that no caller waits for any longer.
      "redis/src/clients/redis-over-http.ts",
      "rules/src/sources/watch-file.ts",
      // These files bound sockets. The timeouts share one timer, or end with the socket.
      ...[
        "service/src/bounds/deadlines.ts",
        "service/src/grpc/grpc-door.ts",
        "service/src/grpc/plain-call.ts",
      ],
      ...[
        "service/src/grpc/wasted-bytes.ts",
        "service/src/http/answer-call.ts",
        "service/src/http/http-context.ts",
        "service/src/http/http-door.ts",
      ],
      ...["service/src/program/running.ts", "service/src/sockets/connections.ts"],
    ])
  })

  it("report an incident: the class Incident, and the warner for single warnings", () => {
    expect(filesWith(/\bclass (?!Incident\b)\w*(?:Incident|Outage|Loss|Complaint)\w*/)).toEqual([
      // This file formats the lines of an incident.
      "core/src/limiter/events/outage-log.ts",
    ])
    expect(filesWith(/\b#?warner\.say\(/)).toEqual([
      "core/src/ground/incident.ts",
      "core/src/ground/warnings.ts",
      // These are changes of rules, which are not incidents because they do not last.
      "rules/src/book/reporter.ts",
    ])
  })

  it("reject an option: a shape, or the checks in ground/option-checks.ts", () => {
    const built = [...sources.values()].flatMap((code) => [...code.matchAll(/new InvalidOptionError\(/g)])
    expect(built.length).toBeLessThanOrEqual(MOST_REJECTIONS)
  })
})
