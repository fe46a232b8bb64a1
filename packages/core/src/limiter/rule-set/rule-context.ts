import type { BlockState } from "../../decision/block-watch.ts"
import { REQUESTS } from "../../ground/policy.ts"
import type { Warner } from "../../ground/warnings.ts"
import { compileClientAddress } from "../../request/client-address.ts"
import type { ClientAddressOptions } from "../../request/client-address-options.ts"
import { compileClientGroup } from "../../request/client-group.ts"
import { isBuiltInField } from "../../request/field.ts"
import type { ClientAddressReader } from "../../request/request.ts"
import { amountCallback, type Callback, type CallbackContext } from "../callbacks/callback.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import { fieldCallback } from "./field-callback.ts"
import type { FieldWatch } from "./field-watch.ts"
import type { DecisionStep } from "./steps.ts"

/** The settings with which all rules of a limiter are compiled. */
export interface RuleContext
  extends CallbackContext,
    Pick<ParsedOptions, "service" | "onStoreFailure" | "extractorNames" | "hashKeys" | "hashSecret"> {
  /** Returns the callback of a field of the app's own; undefined for any other field. */
  readonly fieldOf: (name: string) => Callback<string | undefined> | undefined
  /**
   * Returns how many units of one kind a request takes, or the callback that returns it. Undefined if the options do not
   * name the unit.
   */
  readonly amountOf: (unit: string) => number | Callback<number> | undefined
  readonly clientAddress: ClientAddressReader
  readonly clientGroup: ClientAddressReader
  /** Returns the group in which a client with this address is counted. */
  readonly groupOf: (address: string) => string | undefined
  /** The text of the rule's counters, if it is known without a request. */
  readonly partition?: string
  /** The earliest step at which any rule can be decided. */
  readonly firstStep: DecisionStep
  /** The watches for missing fields, by the counter of the rule. */
  readonly watches: Map<string, FieldWatch>
  /** The state that shows whether `limiter.block` may have blocked clients. */
  readonly blocks: BlockState
}

/** The options that a rule context is made from. */
type ContextOptions = Pick<
  ParsedOptions,
  | "service"
  | "onStoreFailure"
  | "extractorOf"
  | "extractorNames"
  | "amountOf"
  | "skip"
  | "callbackTimeoutMs"
  | "clock"
  | "clientAddress"
  | "hashKeys"
  | "hashSecret"
>

export function createRuleContext(options: ContextOptions, warner: Warner): RuleContext {
  const { extractorOf, extractorNames, onStoreFailure, service, amountOf, skip } = options
  const { callbackTimeoutMs, clock, hashKeys, hashSecret } = options
  const callbackContext = { callbackTimeoutMs, clock, warner }
  // Changed rules reuse the same callbacks, so that waiting requests can reuse the callbacks' results.
  const known = new WeakMap<(request: unknown) => unknown, Callback<string | undefined>>()
  const amounts = new Map<string, ReturnType<RuleContext["amountOf"]>>()
  const clientAddress = createAddressReader(options.clientAddress, warner)
  return {
    ...callbackContext,
    service,
    onStoreFailure,
    extractorNames,
    hashKeys,
    hashSecret,
    fieldOf(name) {
      const extractor = isBuiltInField(name) ? undefined : extractorOf(name)
      if (extractor === undefined) return undefined
      const callback = known.get(extractor) ?? fieldCallback(name, extractor, callbackContext)
      known.set(extractor, callback)
      return callback
    },
    amountOf(unit) {
      if (!amounts.has(unit)) {
        const amount = amountOf(unit)
        const isFunction = typeof amount === "function"
        amounts.set(unit, isFunction ? amountCallback(unit, amount, callbackContext) : amount)
      }
      return amounts.get(unit)
    },
    // These functions are called before any rule is checked, and may read the body.
    firstStep: typeof amountOf(REQUESTS) === "function" || skip !== undefined ? "body" : "arrival",
    watches: new Map(),
    blocks: { isOn: false },
    clientAddress,
    clientGroup: compileClientGroup(clientAddress, options.clientAddress),
    groupOf: (address) => compileClientGroup(() => address, options.clientAddress)({}),
  }
}

function createAddressReader(options: ClientAddressOptions, warner: Warner): ClientAddressReader {
  const read = compileClientAddress(
    options,
    (header, { proxySetting }) =>
      warner.once(
        "SLUICE_FORWARDED_HEADER_IGNORED",
        `A request had the header ${header}, which is ignored because no proxy is trusted. All clients behind a proxy count as one. ` +
          (proxySetting === undefined ? "" : `${proxySetting} has no effect on the limiter. `) +
          "Set trustedProxies to the number of proxies in front of the app or to their addresses, or to 0 if there is none.",
      ),
    (code, message) => warner.once(code, message),
  )
  return (facts) => {
    const address = read(facts)
    if (address === undefined) {
      warner.once(
        "SLUICE_ADDRESS_UNKNOWN",
        "A request had no client address: no remoteAddress was given, its connection was closed, or it came through a " +
          "Unix socket. Rules by address handle such requests by their onMissing; by default, all of them share one counter. " +
          "Pass remoteAddress, or set trustedProxies to 1 behind a proxy on a Unix socket, and let it set X-Forwarded-For.",
      )
    }
    return address
  }
}
