import type { Command } from "commander"
import { NotAccepted } from "./not-accepted.ts"
import { givenText, type SettingName } from "./options.ts"
import { readSecret, type Secret } from "./secrets.ts"
import type { Read } from "./values.ts"

/** The variables of the environment. */
export type Env = Readonly<Record<string, string | undefined>>

/** Reads settings one by one, and collects all problems. */
export class Reader {
  readonly problems: string[] = []
  readonly #command: Command
  readonly #env: Env

  constructor(command: Command, env: Env) {
    this.#command = command
    this.#env = env
  }

  /** Reads a setting that has a default. An invalid text is recorded as a problem, and the result is undefined. */
  value<T>(setting: SettingName, readText: Read<T>): T {
    return this.optional(setting, readText) as T
  }

  optional<T>(setting: SettingName, readText: Read<T>): T | undefined {
    const { name, text } = givenText(this.#command, setting)
    if (text === undefined) return undefined
    return this.#attempt(`${name}: ${JSON.stringify(text)}`, () => readText(text))
  }

  isGiven(setting: SettingName): boolean {
    return !givenText(this.#command, setting).isDefault
  }

  secret<T>(secret: Secret<T>): T | undefined {
    return this.#attempt(`${secret.variable}: its value (not shown)`, () => readSecret(secret, this.#env))
  }

  hasGiven({ variable, file }: Secret<unknown>): boolean {
    return (this.#env[variable] ?? "") !== "" || (this.#env[file] ?? "") !== ""
  }

  refuse(setting: SettingName, is: string, accepted: string): void {
    const { name, text } = givenText(this.#command, setting)
    this.problems.push(`${name}: ${JSON.stringify(text)} ${is}; accepted: ${accepted}`)
  }

  refuseSecret({ variable }: Secret<unknown>, is: string, accepted: string): void {
    this.problems.push(`${variable}: its value (not shown) ${is}; accepted: ${accepted}`)
  }

  /** Records a missing setting. A setting that was given and is invalid is already reported. */
  missing(setting: SettingName, why: string): void {
    const { name, text } = givenText(this.#command, setting)
    if (text === undefined) this.problems.push(`${name}: is missing; ${why}`)
  }

  #attempt<T>(what: string, action: () => T): T | undefined {
    try {
      return action()
    } catch (error) {
      if (!(error instanceof NotAccepted)) throw error
      this.problems.push(`${what} ${error.message}; accepted: ${error.accepted}`)
      return undefined
    }
  }
}
