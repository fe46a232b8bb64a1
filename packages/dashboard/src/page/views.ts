import type { LimiterStatus } from "@sluice/core"
import type { ActivityOverview, InstanceOverview } from "../overview/overview.ts"
import {
  type DecisionOutcome,
  type LimitedClient,
  OUTCOMES,
  type RecentRefusal,
  type RulesState,
} from "../recorder/snapshot.ts"
import {
  allRules,
  inFiveMinutes,
  lastDay,
  lastSeconds,
  OUTCOME_WORDS,
  perSecond,
  type RuleOfService,
  requestsPerSecond,
} from "./counts.ts"
import { h, type PageContent } from "./element.ts"
import { sparkline } from "./sparkline.ts"
import { figure, keyCell, refusedColumns, table } from "./tables.ts"
import { clock, count, duration, name, named, rate, share, visible } from "./text.ts"

/** Returns the view that the part of the address after "#" names, and its title. */
export function viewOf(address: string, overview: ActivityOverview): PageContent {
  if (address === "#refusals") return refusalsView(overview)
  if (address === "#health") return healthView(overview)
  const rules = allRules(overview)
  const rule = rules.find(({ href }) => href === address)
  if (rule !== undefined) return ruleView(rule, overview)
  const note = address.startsWith("#rule/") && h("p", {}, "This rule has not decided any request yet.")
  return [note, nowView(rules, overview)]
}

function nowView(rules: readonly RuleOfService[], { atMs, services }: ActivityOverview): PageContent {
  const refusing = rules.filter((rule) => perSecond(rule, "refused") > 0)
  const total = rules.reduce((sum, rule) => sum + perSecond(rule, "refused"), 0)
  const who = refusing.length === 1 ? "1 rule refuses" : `${count(refusing.length)} rules refuse`
  const clients = rules
    .filter((rule) => !rule.shadow)
    .flatMap((rule) => rule.refused.map((client) => ({ client, rule })))
    .sort((one, other) => other.client.refusals - one.client.refusals)
    .slice(0, 10)
  const link = ({ href, rule, service }: RuleOfService): PageContent => [
    h("a", { href }, named(rule)),
    services.length > 1 && h("small", {}, " ", named(service)),
  ]
  return [
    h("h2", {}, total === 0 ? "No rule refuses requests now" : `${who} ${rate(total)} requests per second`),
    table(
      "Rules. Rates are averages of 10 s.",
      rules,
      [
        ["Rule", (rule) => [link(rule), rule.shadow && h("small", {}, " shadow")]],
        ["Last 5 min", (rule) => sparkline(lastSeconds(rule, atMs))],
        ["#Refused / s", (rule) => quantity("bad", rule, "refused")],
        ["#Clients refused", (rule) => (rule.shadow ? "0" : about(rule.refusedClients))],
        ["#Would refuse / s", (rule) => quantity("warn", rule, "shadowed")],
        ["#Requests / s", (rule) => rate(requestsPerSecond(rule))],
        ["#Degraded / s", (rule) => quantity("warn", rule, "degraded")],
      ],
      "No request has been decided since this page began to record.",
    ),
    h("h2", {}, "Clients refused most"),
    table(
      RECENT,
      clients,
      [
        ["Client", ({ client }) => keyCell(client.key)],
        ["Rule", ({ rule }) => link(rule)],
        ...refusedColumns<(typeof clients)[number]>(atMs, ({ client }) => client),
      ],
      "No client was refused in the last 5 minutes.",
    ),
  ]
}

/** The time that lists of clients are about. */
const RECENT = "In the last 5 to 10 minutes"

/** Most clients that a rule lists. A larger number of clients is an estimate. */
const MOST_LISTED = 256

function about(clients: number): string {
  return clients <= MOST_LISTED ? count(clients) : `≈ ${count(clients)}`
}

/** Returns a rate and its share of all requests, emphasized unless it is 0. */
function quantity(className: string, rule: RuleOfService, outcome: DecisionOutcome): PageContent {
  const value = perSecond(rule, outcome)
  if (value === 0) return "0"
  return [
    h("strong", { class: className }, rate(value)),
    h("small", {}, ` ${share(value, requestsPerSecond(rule))}`),
  ]
}

function ruleView(rule: RuleOfService, { atMs, services }: ActivityOverview): PageContent {
  const refusals = services
    .filter(({ service }) => service === rule.service)
    .flatMap((service) => service.refusals)
    .filter((refusal) => refusal.rule === rule.rule)
  const refused = rule.shadow ? "Clients that it would refuse" : "Clients refused"
  const outcomes = OUTCOMES.map((outcome) => [outcome, inFiveMinutes(rule, outcome)] as const)
  const facts = [
    ...outcomes
      .filter(([outcome, requests]) => requests > 0 || outcome === "admitted" || outcome === "refused")
      .map(([outcome, requests]) => [`${OUTCOME_WORDS[outcome]} in 5 min`, count(requests)]),
    [refused, about(rule.refusedClients)],
  ]
  return [
    h("p", { class: "up" }, h("a", { href: "#now" }, "← All rules")),
    h("h2", {}, "Rule ", named(rule.rule), services.length > 1 && [" of ", named(rule.service)]),
    h(
      "dl",
      { class: "figures" },
      facts.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
    ),
    h(
      "div",
      { class: "plots" },
      figure("Requests per second in the last 5 minutes", "seconds", lastSeconds(rule, atMs)),
      figure("Requests per 5 minutes in the last day", "slots", lastDay(rule, atMs)),
      h(
        "section",
        {},
        h("h3", {}, `${refused} most`),
        table(
          RECENT,
          rule.refused,
          [["Client", ({ key }) => keyCell(key)], ...refusedColumns<LimitedClient>(atMs, (client) => client)],
          "None in the last 5 minutes.",
        ),
      ),
      h(
        "section",
        {},
        h("h3", {}, "Clients with the most requests"),
        table(
          `${RECENT}, estimated from every 16th request`,
          rule.busy,
          [
            ["Client", ({ key }) => keyCell(key)],
            ["#Requests", ({ requests }) => `≈ ${count(requests)}`],
          ],
          "None in the last 5 minutes.",
        ),
      ),
    ),
    h("h3", {}, "Last refusals"),
    refusalsTable(refusals),
  ]
}

function refusalsView({ services }: ActivityOverview): PageContent {
  const refusals = services.flatMap((service) => service.refusals).sort((one, other) => other.atMs - one.atMs)
  return [h("h2", {}, "Last refusals"), refusalsTable(refusals)]
}

function refusalsTable(refusals: readonly RecentRefusal[]): PageContent {
  return table(
    "Latest first",
    refusals,
    [
      ["Time", ({ atMs }) => clock(atMs)],
      ["Client", ({ key }) => keyCell(key)],
      ["Why", ({ text }) => h("bdi", {}, visible(text))],
    ],
    "No request was refused.",
  )
}

function healthView({ atMs, services }: ActivityOverview): PageContent {
  return services.map(({ service, instances }) => [
    h("h2", {}, "Service ", named(service)),
    table<InstanceOverview>(
      "The limiters that report",
      instances,
      [
        ["Limiter", ({ instance }) => h("code", {}, instance.slice(0, 8))],
        ["Circuit breakers", ({ status }) => breakersCell(status)],
        ["Rules", ({ rulesStatus }) => rulesCell(rulesStatus, atMs)],
        ["Leases", ({ status }) => leasesCell(status)],
        ["Mirrors and write-back", ({ status }) => chargesCell(status)],
        ["#Waiting", ({ status }) => count(status.waiting)],
        ["#In progress", ({ status }) => count(status.inFlight)],
        ["Records since", ({ sinceMs }) => `${clock(sinceMs)}, for ${duration(atMs - sinceMs)}`],
      ],
      "No limiter reports.",
    ),
  ])
}

const NONE = "none"

function breakersCell({ openBreakers }: LimiterStatus): PageContent {
  if (openBreakers === undefined) return NONE
  return verdict(openBreakers === 0, openBreakers === 0 ? "closed" : `${count(openBreakers)} open`)
}

function rulesCell({ version, loadedAtMs, isStale, problems }: RulesState, atMs: number): PageContent {
  return [
    version !== undefined && `version ${version}, `,
    loadedAtMs === undefined ? "in code" : `read ${duration(atMs - loadedAtMs)} ago`,
    isStale && [" ", verdict(false, "stale")],
    problems.map((problem) => h("div", {}, verdict(false, visible(problem)))),
  ]
}

function leasesCell({ leases }: LimiterStatus): PageContent {
  if (leases === undefined) return NONE
  return `${count(leases.held)} held, ${count(leases.granted)} used, ${count(leases.lost)} lost`
}

function chargesCell({ mirrors, writeBack }: LimiterStatus): PageContent {
  const charges = Object.entries({ ...mirrors, ...(writeBack !== undefined && { "write-back": writeBack }) })
  if (charges.length === 0) return NONE
  return charges.map(([to, { failingMs, lost }]) => {
    const state = failingMs === 0 ? "confirmed" : `failing for ${duration(failingMs)}`
    return h("div", {}, named(to), ": ", verdict(failingMs === 0, state), `, ${count(lost)} lost`)
  })
}

function verdict(isGood: boolean, text: string): PageContent {
  return isGood ? h("span", { class: "good" }, `✓ ${text}`) : h("strong", { class: "bad" }, `✗ ${text}`)
}

/** Returns sentences about what needs attention. They contain no figures, because a screen reader reads each change. */
export function alertsOf(overview: ActivityOverview): readonly string[] {
  const ofServices = overview.services.flatMap(({ service, instances, rules }) => {
    const isAny = (test: (instance: InstanceOverview) => boolean): boolean => instances.some(test)
    const isOpen = isAny(({ status }) => (status.openBreakers ?? 0) > 0)
    const alerts: readonly (readonly [isTrue: boolean, sentence: string])[] = [
      [isOpen, "the shared store does not respond. Its circuit breaker is open."],
      [
        !isOpen && rules.some((rule) => perSecond(rule, "degraded") > 0),
        "some requests are decided without the shared store.",
      ],
      [isAny(({ rulesStatus }) => rulesStatus.isStale), "the rules are out of date."],
      [
        isAny(({ rulesStatus }) => rulesStatus.problems.length > 0),
        "the rules have problems, which Health shows.",
      ],
    ]
    return alerts.flatMap(([isTrue, sentence]) => (isTrue ? [`${name(service)}: ${sentence}`] : []))
  })
  return overview.missing === undefined ? ofServices : [visible(overview.missing), ...ofServices]
}
