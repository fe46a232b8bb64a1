import { createProgram } from "../../../packages/cli/src/program.ts"
import { createCommand } from "../../../packages/service/src/program/settings/command.ts"

const noop = (): void => undefined

/**
 * Returns the mistakes in a call of one of our programs: an unknown command or flag, or a wrong number of arguments.
 */
export function wrongUsage(
  program: "sluice" | "sluice-service",
  args: readonly string[],
): string | undefined {
  let command =
    program === "sluice" ? createProgram({} as never, noop, noop, noop) : createCommand("0", noop, noop)
  let rest = args
  while (command.commands.length > 0) {
    const [name = "", ...others] = rest
    const found = command.commands.find((each) => each.name() === name)
    if (found === undefined) return `${command.name()} has no command "${name}"`
    command = found
    rest = others
  }
  const { operands, unknown } = command.parseOptions([...rest])
  if (unknown.length > 0) return `${command.name()} has no flag ${unknown[0]}`
  const needed = command.registeredArguments
  const most = needed.some(({ variadic }) => variadic) ? Number.POSITIVE_INFINITY : needed.length
  const isRight =
    operands.length >= needed.filter(({ required }) => required).length && operands.length <= most
  return isRight ? undefined : `${command.name()} takes ${command.usage()}`
}
