import type { RefusedClient, ReplayResult, RuleResult } from "@sluice/logs"

const MINUTE_MS = 60_000
const FROM = Date.UTC(2026, 0, 31, 22, 13, 0)
const EDGES = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10]
const NO_PEAKS: RuleResult["peaks"] = { edges: EDGES, counts: EDGES.map(() => 0).concat(0) }
const MAIN_LIMIT =
  "The log shows what clients did without these rules. Refused clients would have retried, paused or left."

/** Returns a result for a log of 2 million lines, with every optional section. The result is the same in every run. */
export function largeResult(): ReplayResult {
  const random = seeded(7)
  const steps = 167
  const admitted = Array.from({ length: steps }, (_, i) =>
    Math.round(9_700 + 2_600 * Math.sin(i / 29) + 900 * random()),
  )
  const perIp = admitted.map((_, i) =>
    i > 60 && i < 84 ? 6_400 + Math.round(900 * random()) : i % 11 === 0 ? 420 : 40,
  )
  const api = admitted.map((_, i) => (i > 100 ? Math.round(2_300 * random()) : 0))
  const login = admitted.map((_, i) => (i === 40 || i === 97 ? 2 : 0))
  return {
    schema: 1,
    ok: false,
    problems: [],
    log: {
      files: [
        { name: "access.log", format: "combined", lines: 812_006 },
        { name: "access.log.1.gz", format: "combined", lines: 1_187_994 },
      ],
      lines: 2_000_000,
      requests: 1_999_871,
      unparsed: 17,
      skipped: 112,
      reordered: 15_837,
      late: 3,
      tooManyRequests: 1_204,
      clients: 158_659,
      from: FROM,
      to: FROM + steps * MINUTE_MS - 5_000,
      resolutionMs: 1_000,
    },
    rules: [
      ruleResult("per-ip", {
        refused: 308_830,
        clients: { seen: 158_659, refused: 23, bystanders: 0 },
        ratios: ratios(8, 11, 4),
        peaks: { edges: EDGES, counts: [97_210, 41_022, 14_980, 3_904, 1_288, 201, 31, 8, 5, 4, 2, 3, 1] },
      }),
      ruleResult("login", {
        limit: 5,
        seen: 25_012,
        refused: 4,
        clients: { seen: 20_118, refused: 3, bystanders: 1 },
        ratios: ratios(0, 3, 0),
        peaks: { edges: EDGES, counts: [0, 0, 18_766, 0, 1_204, 122, 23, 0, 2, 1, 0, 0, 0] },
        spread: { refused: 2, clients: 1 },
        windowMs: 5_000,
        window: "5 seconds",
      }),
      ruleResult("api", {
        limit: 1_000,
        windowMs: 3_600_000,
        window: "1 hour",
        seen: 1_000_462,
        refused: 159_714,
        clients: { seen: 80_012, refused: 30, bystanders: 2 },
        ratios: ratios(9, 14, 7),
        peaks: { edges: EDGES, counts: [70_100, 8_020, 1_590, 180, 61, 22, 9, 9, 8, 6, 4, 3, 0] },
        tooShort: true,
        shadow: true,
        algorithm: "token-bucket",
      }),
      ruleResult("per-user", {
        judged: false,
        missing: ["user_id", "request.body.plan"],
        seen: 0,
        refused: 0,
        clients: { seen: 0, refused: 0, bystanders: 0 },
        ratios: ratios(0, 0, 0),
        peaks: NO_PEAKS,
      }),
    ],
    total: { seen: 1_999_871, refused: 383_567, clients: { seen: 158_659, refused: 30 } },
    clients: Array.from({ length: 1_000 }, (_, i) => refusedClient(i, random)),
    timeline: {
      from: FROM,
      stepMs: MINUTE_MS,
      admitted,
      refused: perIp.map((each, i) => each + (login[i] ?? 0)),
      refusedBy: { "per-ip": perIp, login, api },
    },
    against: {
      file: "rules.yaml",
      newlyRefused: { requests: 1_202, clients: 7 },
      noLongerRefused: { requests: 31, clients: 1 },
      rules: [
        { name: "per-ip", newlyRefused: 1_202, noLongerRefused: 0 },
        { name: "login", newlyRefused: 0, noLongerRefused: 31 },
      ],
      clients: [
        { client: "203.0.113.7", before: 0, after: 911 },
        { client: "2001:db8::17", before: 31, after: 0 },
      ],
    },
    algorithms: [
      { rule: "per-ip", algorithm: "sliding-window-strict", refused: 301_004, clients: 22 },
      { rule: "per-ip", algorithm: "token-bucket", refused: 288_120, clients: 19 },
      { rule: "login", algorithm: "sliding-window-strict", refused: 4, clients: 3 },
      { rule: "login", algorithm: "token-bucket", problem: "token-bucket does not support countRejected" },
    ],
    live: {
      compared: 41_230,
      different: 2,
      differences: [
        { file: "access.log", line: 812, live: "refused by per-ip", replayed: "admitted" },
        { file: "access.log", line: 9_120, live: "admitted", replayed: "refused by login" },
      ],
    },
    bounds: [
      { bound: "--max-refused 25%", value: "19.2%", holds: true },
      { bound: "--max-refused-clients 20", value: "30", holds: false },
    ],
    notes: [
      MAIN_LIMIT,
      "api: log too short: its window of 1 hour is longer than a third of the log.",
      "per-ip: 8 clients are only slightly over the limit; 90 per minute would refuse 15 clients instead of 23.",
    ],
  }
}

/** A result for an empty log and no rules. */
export function emptyResult(): ReplayResult {
  return {
    schema: 1,
    ok: true,
    problems: [],
    log: {
      files: [],
      ...{
        lines: 0,
        requests: 0,
        unparsed: 0,
        skipped: 0,
        reordered: 0,
        late: 0,
        tooManyRequests: 0,
        clients: 0,
      },
      from: null,
      to: null,
      resolutionMs: 1_000,
    },
    rules: [],
    total: { seen: 0, refused: 0, clients: { seen: 0, refused: 0 } },
    clients: [],
    timeline: { from: 0, stepMs: MINUTE_MS, admitted: [], refused: [], refusedBy: {} },
    bounds: [],
    notes: [MAIN_LIMIT],
  }
}

/** Names that would change the page if they were written without escaping. */
export const HOSTILE: readonly string[] = [
  `</script><script>window.attacked = "script"</script>`,
  `<img src="https://attacker.example/" onerror="window.attacked = 'image'">`,
  `"><svg onload="window.attacked = 'svg'">`,
  `' style='position:fixed;inset:0' onmouseover='window.attacked = "attribute"`,
  `<!--<script>`,
  `]]></style><style>*{display:none}</style>`,
  `{{constructor.constructor("window.attacked = 'template'")()}}`,
  "\u202Egnp.exe\u202C admin\u200Bistrator\u0000\u0007\u2028",
  "\uD800 lone surrogate",
  "__proto__",
  "constructor",
  `<b>${"long name ".repeat(1_024)}`,
  "\u{1F600}".repeat(3_000),
]

/** A result in which every string that may come from outside is hostile. */
export function hostileResult(): ReplayResult {
  const base = largeResult()
  const name = (i: number): string => HOSTILE[i % HOSTILE.length] ?? ""
  const rules = HOSTILE.map((_, i) =>
    ruleResult(name(i), {
      window: name(i),
      algorithm: name(i),
      ...(i % 4 === 3 && { judged: false, missing: HOSTILE }),
    }),
  )
  const { against, live } = base
  if (against === undefined || live === undefined) throw new Error("the large result has every section")
  return {
    ...base,
    log: { ...base.log, files: HOSTILE.map((text) => ({ name: text, format: text, lines: 1 })) },
    rules,
    clients: HOSTILE.map((client, i) => ({ ...refusedClient(i, seeded(i)), client, rule: name(i + 1) })),
    timeline: {
      ...base.timeline,
      // Use JSON.parse, because it creates an own member named "__proto__", as in a result that was read from JSON.
      refusedBy: JSON.parse(
        JSON.stringify(Object.fromEntries(HOSTILE.map((text) => [text, base.timeline.admitted]))),
      ),
    },
    against: {
      ...against,
      file: name(0),
      rules: HOSTILE.map((text) => ({ name: text, newlyRefused: 1, noLongerRefused: 1 })),
      clients: HOSTILE.map((client) => ({ client, before: 1, after: 2 })),
    },
    algorithms: HOSTILE.map((text) => ({ rule: text, algorithm: text, problem: text })),
    live: {
      compared: 1,
      different: HOSTILE.length,
      differences: HOSTILE.map((text) => ({ file: text, line: 1, live: text, replayed: text })),
    },
    bounds: HOSTILE.map((text) => ({ bound: text, value: text, holds: false })),
    notes: HOSTILE,
  }
}

function ruleResult(name: string, members: Partial<RuleResult>): RuleResult {
  return {
    name,
    algorithm: "sliding-window",
    limit: 60,
    windowMs: MINUTE_MS,
    window: "1 minute",
    shadow: false,
    judged: true,
    missing: [],
    seen: 1_999_871,
    refused: 12,
    reasons: { quota: 12 },
    clients: { seen: 100, refused: 3, bystanders: 0 },
    ratios: ratios(1, 1, 1),
    peaks: { edges: EDGES, counts: [40, 30, 10, 5, 5, 4, 3, 1, 0, 1, 0, 1, 0] },
    tooShort: false,
    ...members,
  }
}

function ratios(slightly: number, clearly: number, far: number): RuleResult["ratios"] {
  return [
    { upTo: 1.5, clients: slightly },
    { upTo: 5, clients: clearly },
    { upTo: null, clients: far },
  ]
}

function refusedClient(i: number, random: () => number): RefusedClient {
  const refused = Math.max(1, Math.round(91_000 / (i + 1) ** 1.3))
  const firstRefused = FROM + Math.round(100 * MINUTE_MS * random())
  return {
    client: i % 7 === 3 ? `2001:db8:${(i * 7919).toString(16)}::1` : `203.0.${i % 113}.${(i * 31) % 250}`,
    rule: i % 3 === 0 ? "api" : "per-ip",
    shadow: i % 3 === 0,
    requests: refused + Math.round(4_000 * random()),
    refused,
    peak: Math.round(100 * (0.7 + 14 / (i + 1) + random())) / 100,
    firstRefused,
    lastRefused: firstRefused + Math.round(60 * MINUTE_MS * random()),
  }
}

/** Returns a random generator that gives the same numbers for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
