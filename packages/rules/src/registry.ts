import { type Problem, SluiceError } from "@sluice/core"
import type { ServiceMetadata, StorableRule } from "@sluice/core/rules"

/** The rules of one service, as a registry stores them. */
export interface RegisteredRules {
  /** The service that the rules belong to. */
  readonly service: string
  /** Increases by one with every change; 0 for rules that were stored without a version. */
  readonly version: number
  /** The valid rules, in the order written. */
  readonly rules: readonly StorableRule[]
  /** The owner and contact of the service. Absent if the registry stores no metadata. */
  readonly metadata?: ServiceMetadata
  /** Problems of the invalid rules. Empty for rules that the registry has written. */
  readonly problems: readonly Problem[]
}

/** The version that a change is based on. */
export interface VersionOption {
  /**
   * The version that the caller has read. The change is made only if this version is still stored. Without a version,
   * the change is made only if nothing is stored. 0 means rules without a version, or no rules. "any" replaces every
   * version.
   */
  readonly version?: number | "any" | undefined
}

/** The metadata that is stored beside the rules. */
export interface MetadataOption {
  /** The owner and contact of the service. If absent, the stored metadata is kept; an empty object removes it. */
  readonly metadata?: ServiceMetadata | undefined
}

/** Options of a removal. */
export interface RemoveOptions {
  /** The version that the caller has read. 0 means rules without a version; "any" removes every version. */
  readonly version: number | "any"
  /** Stops the wait. The call then rejects with the signal's reason. The rules may have been removed nevertheless. */
  readonly signal?: AbortSignal | undefined
}

/** Options of a call to a registry. */
export interface RegistryCallOptions {
  /** Stops the wait. The call then rejects with the signal's reason. A write may have been carried out nevertheless. */
  readonly signal?: AbortSignal | undefined
}

/** A registry where service owners store their rules. A caller cannot overwrite a change that it has not read. */
export interface RuleRegistry {
  /**
   * Replaces the stored rules of a service and returns them with their new version. Rejects with
   * {@link InvalidRuleError}, which lists every problem, before anything is written. Rejects with
   * {@link RuleConflictError} if the stored version is not the given one. Rejects with {@link RuleSourceError} if the
   * rules cannot be written.
   */
  register(
    service: string,
    rules: readonly StorableRule[],
    options?: VersionOption & MetadataOption & RegistryCallOptions,
  ): Promise<RegisteredRules>
  /** Returns the rules of a service with a consistent read; undefined if none are registered. */
  get(service: string, options?: RegistryCallOptions): Promise<RegisteredRules | undefined>
  /** Returns the rules of all services, in no particular order. */
  list(options?: RegistryCallOptions): AsyncIterable<RegisteredRules>
  /**
   * Removes the rules of a service if the given version is stored, or any version for "any". Returns true if rules
   * were stored. If the response to a first attempt was lost and no rules are left, returns true, because that
   * attempt may have removed the rules. Rejects with {@link RuleConflictError} and {@link RuleSourceError} as
   * `register` does.
   */
  remove(service: string, options: RemoveOptions): Promise<boolean>
}

/**
 * Reports that the stored version of a service's rules is not the version on which a change was based. Nothing was
 * changed.
 */
export class RuleConflictError extends SluiceError {
  readonly code = "SLUICE_RULE_CONFLICT"
  /** The service that the rules belong to. */
  readonly service: string
  /** The rules that are stored now; undefined if there are none. */
  readonly found: RegisteredRules | undefined

  /** Creates the error. `options.cause` is the original error. */
  constructor(message: string, service: string, found: RegisteredRules | undefined, options?: ErrorOptions) {
    super(message, options)
    this.service = service
    this.found = found
  }
}
