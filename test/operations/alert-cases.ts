/** Series of an exporter. Each series has its values from minute 0 on, in promtool's notation. */
type Series = Readonly<Record<string, string>>

/** The input for an alert, with series that make the alert fire after `minutes` and series that do not. */
export interface AlertCase {
  readonly minutes: number
  /** Minutes between two values of a series, and between two evaluations; 1 by default. */
  readonly every?: number
  readonly fires: Series
  readonly quiet: Series
}

const decisions = (mode: string) =>
  `sluice_decision_duration_count{job="shop",sluice_limiter_name="api",sluice_decision_mode="${mode}"}`
const policy = (result: string) =>
  `sluice_policy_decisions_total{job="shop",sluice_limiter_name="api",sluice_policy_name="login",sluice_decision_result="${result}"}`
const bucket = (le: string, operation = "decide") =>
  `sluice_decision_duration_bucket{job="shop",sluice_limiter_name="api",sluice_operation_name="${operation}",le="${le}"}`
const gauge = (name: string) => `${name}{job="shop",sluice_limiter_name="api"}`
const calls = (status: string, error = "") =>
  `rpc_server_call_duration_count{job="sluice",rpc_method="Decide",rpc_response_status_code="${status}",error_type="${error}"}`
const service = (name: string, label: string) => `sluice_service_${name}_total{job="sluice",${label}}`

const TWO_DAYS = 2 * 24 * 60

/** The alerts of docs/operations/alerts.yaml. */
export const ALERT_CASES: Readonly<Record<string, AlertCase>> = {
  SluiceStoreUnavailable: {
    minutes: 10,
    fires: { [decisions("degraded")]: "0+60x30", [decisions("normal")]: "0+40x30" },
    quiet: { [decisions("degraded")]: "0+40x30", [decisions("normal")]: "0+60x30" },
  },
  SluiceDecisionsDegraded: {
    minutes: 20,
    fires: { [decisions("degraded")]: "0+2x30", [decisions("normal")]: "0+98x30" },
    quiet: { [decisions("degraded")]: "0+1x30", [decisions("normal")]: "0+199x30" },
  },
  SluiceCircuitBreakerOpen: {
    minutes: 5,
    fires: { [gauge("sluice_store_breaker_open")]: "1x10" },
    quiet: { [gauge("sluice_store_breaker_open")]: "0x10" },
  },
  SluiceStoreTimeouts: {
    minutes: 25,
    fires: {
      'sluice_store_errors_total{job="shop",sluice_limiter_name="api",error_type="timeout"}': "0+2x30",
      [decisions("normal")]: "0+98x30",
    },
    quiet: {
      'sluice_store_errors_total{job="shop",sluice_limiter_name="api",error_type="error"}': "0+2x30",
      [decisions("normal")]: "0+98x30",
    },
  },
  SluiceDecisionsSlow: {
    minutes: 20,
    fires: { [bucket("0.025")]: "0+90x30", [bucket("0.05")]: "0+100x30", [bucket("+Inf")]: "0+100x30" },
    // Slow calls of acquire do not count, because it is meant to wait.
    quiet: {
      ...{ [bucket("0.025")]: "0+100x30", [bucket("0.05")]: "0+100x30", [bucket("+Inf")]: "0+100x30" },
      ...{ [bucket("0.025", "acquire")]: "0x30", [bucket("+Inf", "acquire")]: "0+100x30" },
    },
  },
  SluiceRulesStale: {
    minutes: 5,
    fires: { [gauge("sluice_rule_set_stale")]: "1x10" },
    quiet: { [gauge("sluice_rule_set_stale")]: "0x10" },
  },
  SluiceRulesRejected: {
    minutes: 10,
    fires: { [gauge("sluice_rule_set_rejected")]: "1x20" },
    quiet: { [gauge("sluice_rule_set_rejected")]: "0x20" },
  },
  SluiceRulesLeftOut: {
    minutes: 5,
    fires: { [gauge("sluice_rule_set_problems")]: "2x10" },
    quiet: { [gauge("sluice_rule_set_problems")]: "0x10" },
  },
  SluiceRefusalsRising: {
    minutes: TWO_DAYS,
    every: 15,
    // For more than a day, there are 10 refusals every 15 minutes, and then 60.
    fires: { [policy("admitted")]: "0+100x200", [policy("refused")]: "0+10x186 1860+60x14" },
    quiet: { [policy("admitted")]: "0+100x200", [policy("refused")]: "0+60x200" },
  },
  SluiceCountersEvicted: {
    minutes: 20,
    fires: { [gauge("sluice_store_evictions_total")]: "0+1x30" },
    quiet: { [gauge("sluice_store_evictions_total")]: "5x30" },
  },
  SluiceUnitsLost: {
    minutes: 20,
    fires: { [gauge("sluice_store_settle_lost_total")]: "0+1x30" },
    quiet: { [gauge("sluice_store_mirror_lost_total")]: "5x30" },
  },
  SluiceServiceNotReady: {
    minutes: 10,
    fires: { 'sluice_service_ready{job="sluice",instance="a:8081"}': "0x20" },
    quiet: { 'sluice_service_ready{job="sluice",instance="a:8081"}': "0x2 1x18" },
  },
  SluiceServiceGone: {
    minutes: 10,
    fires: {},
    quiet: { 'sluice_service_ready{job="sluice",instance="a:8081"}': "1x20" },
  },
  SluiceServiceErrors: {
    minutes: 15,
    fires: { [calls("OK")]: "0+98x20", [calls("UNAVAILABLE", "UNAVAILABLE")]: "0+2x20" },
    quiet: { [calls("OK")]: "0+98x20", [calls("INVALID_ARGUMENT")]: "0+2x20" },
  },
  SluiceServiceCallerErrors: {
    minutes: 25,
    fires: { [calls("")]: "0+90x30", [calls("invalid_argument")]: "0+10x30" },
    quiet: { [calls("OK")]: "0+90x30", [calls("CANCELLED")]: "0+10x30" },
  },
  SluiceServiceOverloaded: {
    minutes: 15,
    fires: { [service("overloads", 'sluice_service_bound="bytes"')]: "0+1x20" },
    quiet: { [service("overloads", 'sluice_service_bound="bytes"')]: "7x20" },
  },
  SluiceServiceUnknownServices: {
    minutes: 25,
    fires: { 'sluice_service_unknown_total{job="sluice"}': "0+1x30" },
    quiet: { 'sluice_service_unknown_total{job="sluice"}': "7x30" },
  },
  SluiceServiceWrongTokens: {
    minutes: 25,
    fires: { [service("wrong_tokens", 'rpc_method="Decide"')]: "0+1x30" },
    quiet: { [service("wrong_tokens", 'rpc_method="Decide"')]: "7x30" },
  },
  SluiceServiceConnectionsRefused: {
    minutes: 25,
    fires: { [service("refused_connections", 'sluice_service_bound="peer"')]: "0+1x30" },
    quiet: { [service("refused_connections", 'sluice_service_bound="peer"')]: "7x30" },
  },
}
