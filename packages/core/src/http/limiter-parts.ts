import { compileAddressGroup } from "../address.ts"
import { textOf } from "../errors.ts"
import { SafeEvents } from "../events.ts"
import { Decider, storeErrorOf } from "../limiter/decider.ts"
import { WaitingRoom } from "../limiter/waiting/waiting-room.ts"
import { createWarner, type Warner } from "../warnings.ts"
import { type ClientAddressReader, compileClientAddress } from "./client-address.ts"
import { type ClientAddressOptions, DEFAULT_IPV6_PREFIX } from "./client-address-options.ts"
import type { RuleContext } from "./compiled-rule.ts"
import type { LimiterEvents } from "./limiter.ts"
import type { ParsedOptions } from "./options.ts"

/** What a limiter is made of, and shares with the limiters of its routes. */
export interface LimiterParts<Request> {
  readonly events: SafeEvents<LimiterEvents<Request>>
  readonly warner: Warner
  readonly context: RuleContext
  readonly decider: Decider
  readonly waitingRoom: WaitingRoom
}

/** The parts, wired to each other: what fails in one is warned of and emitted as an event. */
export function createParts<Request>(options: ParsedOptions): LimiterParts<Request> {
  const { logger, store, storeTimeoutMs, instances, clock } = options
  const events = new SafeEvents<LimiterEvents<Request>>((error, name) =>
    warner.once(
      "SLUICE_CALLBACK_FAILED",
      `A listener of "${name}" failed: ${textOf(error)}.`,
      `on ${name}`,
      error,
    ),
  )
  const warner = createWarner(logger, (warning) => events.emit("warning", warning))
  const decider = new Decider({
    store,
    storeTimeoutMs,
    instances,
    clock,
    onDegraded(error) {
      warner.say(
        "error",
        "SLUICE_DEGRADED",
        `${error.message}\nRules decide by their onStoreFailure until it answers again.`,
        error,
      )
      events.emit("degraded", error)
    },
    onRecovered() {
      warner.say("warn", "SLUICE_RECOVERED", "The store answers again.")
      events.emit("recovered")
    },
    // In an outage that is each decision: an error is made only for who listens.
    onStoreError(error) {
      if (events.has("store-error")) events.emit("store-error", storeErrorOf(error))
    },
  })
  const waitingRoom = new WaitingRoom(decider, clock)
  return { events, warner, decider, waitingRoom, context: createContext(options, warner) }
}

function createContext(options: ParsedOptions, warner: Warner): RuleContext {
  const { clientAddress, extractorOf, onStoreFailure, service } = options
  return {
    service,
    onStoreFailure,
    extractorOf,
    warner,
    groupAddress: compileAddressGroup(clientAddress.ipv6Prefix ?? DEFAULT_IPV6_PREFIX),
    clientAddress: createAddressReader(clientAddress, warner),
  }
}

function createAddressReader(options: ClientAddressOptions, warner: Warner): ClientAddressReader {
  const read = compileClientAddress(options, (header) =>
    warner.once(
      "SLUICE_FORWARDED_HEADER_IGNORED",
      `A request came with the header ${header}, which is not believed, so all clients behind a proxy count as one. ` +
        "Set trustedProxies to the number of proxies in front of the app or to their addresses, or to 0 if there is none.",
    ),
  )
  return (facts) => {
    const address = read(facts)
    if (address === undefined) {
      warner.once(
        "SLUICE_ADDRESS_UNKNOWN",
        "A request came without an address: no remoteAddress was given, its connection was gone, or it came by a Unix " +
          "socket. Such requests count as their rule's onMissing says, by default all together.",
      )
    }
    return address
  }
}
