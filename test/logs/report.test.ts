import { createHash } from "node:crypto"
import { type ReplayResult, replayReport } from "@sluice/logs"
import { describe, expect, it } from "vitest"
import { emptyResult, HOSTILE, hostileResult, largeResult } from "./replay-results.ts"

/** Returns the text of a report without tags, script and style, with one space between words. */
function textOf(report: string): string {
  return report
    .replace(/<(script|style)[\s\S]*?<\/\1>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/&#(\d+);/g, (_text, code: string) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, " ")
}

function headings(report: string): string[] {
  return [...report.matchAll(/<h2 [^>]*>(.*?)<\/h2>/g)].map(([, title = ""]) => title.replace(/<[^>]*>/g, ""))
}

/** Returns the table row that begins with a name. */
function row(report: string, name: string): string {
  const [found = ""] =
    report.match(new RegExp(`<tr[^>]*><th scope="row"[^>]*>(<bdi>)?${name}.*?</tr>`, "s")) ?? []
  return textOf(found).trim()
}

describe("replayReport", () => {
  const large = replayReport(largeResult())

  it("allows only its own style and script, by their hashes", () => {
    const [, policy = ""] = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(large) ?? []
    const hashOf = (tag: string): string => {
      const [, text = "", ...others] = large.split(new RegExp(`<${tag}>|</${tag}>`))
      expect(others).toHaveLength(1)
      return `&#39;sha256-${createHash("sha256").update(text).digest("base64")}&#39;`
    }
    // The data is in a script element whose type prevents its execution.
    const withoutData = large.replace(/<script type="application\/json"[\s\S]*?<\/script>/, "")
    expect(withoutData.match(/<script/g)).toHaveLength(1)
    const [, script = ""] = /<script>([\s\S]*?)<\/script>/.exec(withoutData) ?? []
    const scriptHash = `&#39;sha256-${createHash("sha256").update(script).digest("base64")}&#39;`
    expect(policy.split("; ").slice(0, 3)).toEqual([
      "default-src &#39;none&#39;",
      `style-src ${hashOf("style")}`,
      `script-src ${scriptHash}`,
    ])
    expect(large.indexOf("Content-Security-Policy")).toBeLessThan(large.indexOf("<style>"))
  })

  it("refers to no other file, and contains no style attribute", () => {
    expect(large.match(/\s(src|href|style|on\w+)\s*=\s*["']/g)).toBeNull()
    expect(large.match(/@import|url\(|\bimport\(|fetch\(|XMLHttpRequest|innerHTML/g)).toBeNull()
  })

  it("begins with the main limitation of a replay, and contains all sections in order", () => {
    expect(textOf(large)).toMatch(
      /^ Replay of 4 rules Replay of 4 rules access\.log and 1 more file, 2026-01-31 22:13:00 to 2026-02-01 00:59:55 UTC The log shows what clients did without these rules\./,
    )
    expect(headings(large)).toEqual([
      "Rules",
      "Compared with rules.yaml",
      "Algorithms compared",
      "Compared with the verdicts in the log",
      "Bounds",
      "Requests over time",
      "Each rule",
      "Refused clients",
      "Notes",
      "The log",
    ])
    expect(textOf(large)).not.toMatch(/\bbots?\b/i)
  })

  it("shows the requests that each rule refuses, and both figures of a pessimistic rule", () => {
    expect(row(large, "per-ip")).toBe(
      "per-ip 60 per minute sliding-window 1,999,871 308,830 15.4% 23 0.01% 8 11 4 0",
    )
    expect(row(large, "login")).toMatch(/pessimistic: .* 25,012 4 0\.02% 3 0\.01% 0 3 0 1$/)
    expect(row(large, "with the lines")).toBe(
      "with the lines of each second spread evenly 25,012 2 <0.01% 1 <0.01%",
    )
    expect(row(large, "api")).toMatch(
      /shadow: .* log too short: .* 1,000 per hour token-bucket 1,000,462 159,714/,
    )
    expect(row(large, "All enforced rules")).toBe("All enforced rules 1,999,871 383,567 19.2% 30 0.02%")
  })

  it("states that a rule was not judged instead of showing zeros", () => {
    expect(row(large, "per-user")).toBe(
      "per-user 60 per minute sliding-window Not judged. The log does not contain user_id and request.body.plan , which the rule needs.",
    )
    const plots = largeResult().rules.filter(({ judged }) => judged).length
    expect(large.match(/data-plot="peaks"/g)).toHaveLength(plots)
  })

  it("states why a rule with concurrent was not judged", () => {
    const rules = largeResult().rules.flatMap((rule) =>
      rule.judged ? [] : { ...rule, algorithm: "in-flight", limit: 5, missing: ["concurrent"] },
    )
    const report = replayReport({ ...largeResult(), rules })
    expect(row(report, "per-user")).toBe(
      "per-user 5 at a time in-flight Not judged. The log does not contain the end of each request, which the rule needs.",
    )
  })

  it("contains the data of each plot as a table", () => {
    expect(row(large, "2026-01-31 22:13:00")).toMatch(/^2026-01-31 22:13:00 [\d,]+ [\d,]+ [\d.]+%$/)
    expect(row(large, "1× to 1.5×")).toBe("1× to 1.5× 8 <0.01%")
    expect(large.match(/<details><summary>[^<]* as a table/g)).toHaveLength(
      large.match(/data-plot=/g)?.length ?? 0,
    )
  })

  it("shows comparisons, bounds, and differences from the verdicts in the log", () => {
    expect(row(large, "2001:db8::17")).toBe("2001:db8::17 31 0 −31")
    expect(row(large, "login</bdi></th><td class=.n.>4")).toBe(
      "login 4 3 token-bucket does not support countRejected",
    )
    expect(row(large, "access.log</bdi></th><td class=.n.>9")).toBe(
      "access.log 9,120 admitted refused by login",
    )
    expect(row(large, "<code>--max-refused-clients")).toBe("--max-refused-clients 20 30 ✗ exceeded")
  })

  it("contains the peak of all clients together for a rule that counts the whole service", () => {
    const [perIp] = largeResult().rules as [ReplayResult["rules"][number]]
    const service = {
      ...perIp,
      name: "service",
      peak: 1.355,
      clients: { seen: 9, refused: 3, bystanders: 3 },
    }
    const report = replayReport({
      ...largeResult(),
      rules: [service, { ...service, name: "quiet", refused: 0 }],
    })
    expect(row(report, "service")).toMatch(/308,830 15\.4% 3 33\.3% all clients together: 1\.36× 3$/)
    const text = textOf(report)
    expect(text).toContain(
      "Refuses 308,830 requests of 3 clients. The peak of all clients together is 1.36× the limit.",
    )
    expect(text).toContain("Refuses no request. The peak of all clients together is 1.36× the limit.")
    expect(report).not.toContain('data-plot="peaks"')
  })

  it("does not state that 0 clients are newly refused if their clients were refused before", () => {
    const { against } = largeResult() as Required<ReplayResult>
    const report = replayReport({
      ...largeResult(),
      against: { ...against, newlyRefused: { requests: 2_730, clients: 0 } },
    })
    expect(textOf(report)).toContain(
      "Newly refused: 2,730 requests. Clients that were never refused before: 0. No longer refused: 31 requests. Clients that are never refused now: 1.",
    )
    expect(textOf(report)).not.toMatch(/[1-9] requests? of 0 clients/)
  })

  it("shows unparsed lines among the key figures if there are any", () => {
    expect(textOf(large)).toContain("Lines unparsed 17 <0.01%")
    expect(textOf(replayReport(emptyResult()))).not.toContain("Lines unparsed")
  })

  it("states that an empty log contains no requests", () => {
    const empty = replayReport(emptyResult())
    expect(headings(empty)).toEqual([
      "Rules",
      "Requests over time",
      "Each rule",
      "Refused clients",
      "The log",
    ])
    expect(textOf(empty)).toContain("The log contains no requests.")
    expect(empty.match(/data-plot="|<table/g)).toBeNull()
  })

  it("adds no markup for hostile names, and shortens long names", () => {
    const hostile = replayReport(hostileResult())
    const tags = (report: string): string[] =>
      [...new Set([...report.matchAll(/<([a-z]\w*)/g)].map(([, tag = ""]) => tag))].sort()
    expect(tags(hostile)).toEqual(tags(large))
    expect(hostile.match(/<\/script/g)).toHaveLength(2)
    expect(HOSTILE.filter((name) => /[<>]/.test(name) && hostile.includes(name))).toEqual([])
    const invisible = ["\u202E", "\u200B", "\u2028", "\u0000", "\uD800", "\uFFFD"]
    expect(invisible.filter((char) => hostile.includes(char) !== large.includes(char))).toEqual([])
    expect(hostile.length).toBeLessThan(2 * large.length)
  })
})
