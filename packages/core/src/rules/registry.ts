import { type Problem, SluiceError } from "../ground/errors.ts"
import type { StorableRule } from "./rule.ts"

/** The rules of one service as a registry has them. */
export interface RegisteredRules {
  /** Whose rules these are. */
  readonly service: string
  /** Grows by one with every change; 0 for rules that were stored without a version. */
  readonly version: number
  /** The good ones, in the order written. */
  readonly rules: readonly StorableRule[]
  /** What is wrong with the others. Empty for rules that the registry has written. */
  readonly problems: readonly Problem[]
}

/** What a change is based on. */
export interface VersionOption {
  /**
   * The version that the caller has seen: the change is made only if it is still there. Without it, only if nothing is
   * there; 0 is rules that were stored without a version, or nothing; "any" changes whatever is there.
   */
  readonly version?: number | "any" | undefined
}

/** Which rules are to be removed. */
export interface RemoveOptions {
  /** The version that the caller has seen; 0 is rules that were stored without a version; "any" is whatever is there. */
  readonly version: number | "any"
  /** Ends the waiting: the call rejects with the signal's reason. The rules may have been removed all the same. */
  readonly signal?: AbortSignal | undefined
}

/** Until when a call to a registry is waited for. */
export interface RegistryCallOptions {
  /** Ends the waiting: the call rejects with the signal's reason. A write may have been carried out all the same. */
  readonly signal?: AbortSignal | undefined
}

/** Where service owners register their rules. What one caller has written no other overwrites without having seen it. */
export interface RuleRegistry {
  /**
   * Registers the rules of a service in place of those that are there, and yields them with their new version.
   * Rejects with {@link InvalidRuleError}, every problem named, before anything is written; with {@link RuleConflictError} when another
   * version is there than the one given; with {@link RuleSourceError} when it cannot be written.
   */
  register(
    service: string,
    rules: readonly StorableRule[],
    options?: VersionOption & RegistryCallOptions,
  ): Promise<RegisteredRules>
  /** The rules of a service, read consistently; undefined when none are registered. */
  get(service: string, options?: RegistryCallOptions): Promise<RegisteredRules | undefined>
  /** The rules of all services, in no order. */
  list(options?: RegistryCallOptions): AsyncIterable<RegisteredRules>
  /**
   * Removes the rules of a service if the given version of them is there, or for "any" whichever is; yields whether there
   * were any. Where the answer to a first attempt was lost, and there are none any more, it yields true: that attempt may
   * have removed them. Rejects with {@link RuleConflictError} and {@link RuleSourceError} like `register`.
   */
  remove(service: string, options: RemoveOptions): Promise<boolean>
}

/** Another version of a service's rules is stored than the one that a change was based on. Nothing was changed. */
export class RuleConflictError extends SluiceError {
  readonly code = "SLUICE_RULE_CONFLICT"
  /** Whose rules they are. */
  readonly service: string
  /** What is there now; undefined when there is nothing. */
  readonly found: RegisteredRules | undefined

  /** `options.cause` is what led to it. */
  constructor(message: string, service: string, found: RegisteredRules | undefined, options?: ErrorOptions) {
    super(message, options)
    this.service = service
    this.found = found
  }
}
