import { readFileSync } from "node:fs"
import { type Command, Option } from "commander"
import { flagOf, SETTINGS, type Setting, type SettingName } from "./settings-table.ts"
import { NotAccepted } from "./values.ts"

/** The environment variables of the process. */
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

  /**
   * Returns the value of a setting, or its default. Returns undefined if the setting has neither. Also returns
   * undefined for an invalid value, and records it as a problem.
   */
  read(name: SettingName): unknown {
    const { kind, otherwise }: Setting<unknown> = SETTINGS[name]
    try {
      const text = this.#given(name) ?? otherwise
      return text === undefined ? undefined : kind.read(text)
    } catch (error) {
      if (!(error instanceof NotAccepted)) throw error
      this.refuse(name, error.message, error.accepted)
      return undefined
    }
  }

  /** Whether a value was given, even an invalid one. */
  isGiven(name: SettingName): boolean {
    const { flags, variable } = SETTINGS[name]
    if (flags !== undefined) return this.#given(name) !== undefined
    return [variable, `${variable}_FILE`].some((each) => (this.#env[each] ?? "") !== "")
  }

  /** Records a problem with the value of a setting. The value of a secret is not shown. */
  refuse(name: SettingName, is: string, accepted: string): void {
    const { flags, otherwise }: Setting<unknown> = SETTINGS[name]
    const value =
      flags === undefined ? "its value (not shown)" : JSON.stringify(this.#given(name) ?? otherwise)
    this.problems.push(`${this.#nameOf(name)}: ${value} ${is}; accepted: ${accepted}`)
  }

  /** Records a missing setting. */
  missing(name: SettingName, why: string): void {
    this.problems.push(`${this.#nameOf(name)}: is missing; ${why}`)
  }

  /** Returns the text of a setting, or undefined if it is not given. Throws NotAccepted for an unreadable secret. */
  #given(name: SettingName): string | undefined {
    const { flags, variable } = SETTINGS[name]
    if (flags === undefined) return readSecret(variable, this.#env)
    const given = this.#command.getOptionValue(optionName(flags)) as string | undefined
    // An empty variable counts as not given, because a compose file cannot omit a variable conditionally.
    return this.#isOfEnv(flags) && given === "" ? undefined : given
  }

  /** Returns the names of a setting. The name that was used comes first, as in "SLUICE_HTTP_ADDRESS (or --http)". */
  #nameOf(name: SettingName): string {
    const { flags, variable } = SETTINGS[name]
    if (flags === undefined) return variable
    const flag = flagOf(flags)
    return this.#isOfEnv(flags) ? `${variable} (or ${flag})` : `${flag} (or ${variable})`
  }

  #isOfEnv(flags: string): boolean {
    return this.#command.getOptionValueSource(optionName(flags)) === "env"
  }
}

/** Returns commander's name for an option. */
function optionName(flags: string): string {
  return new Option(flags).attributeName()
}

/** Returns the text of a secret, from its variable or from the file that the variable with "_FILE" names. */
function readSecret(variable: string, env: Env): string | undefined {
  const file = `${variable}_FILE`
  const { [variable]: text = "", [file]: path = "" } = env
  if (text !== "" && path !== "") {
    throw new NotAccepted(`is given together with ${file}`, `${variable} or ${file}`)
  }
  if (path === "") return text === "" ? undefined : text
  try {
    return readFileSync(path, "utf8").trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new NotAccepted(`is in ${JSON.stringify(path)}, which cannot be read: ${code}`, "a readable file")
  }
}
