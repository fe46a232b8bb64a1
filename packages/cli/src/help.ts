/** Returns the end of a command's help: details, an example, and the meaning of the exit codes. */
export function help(example: string, ok: string, problems?: string, more = ""): string {
  const codes = [
    `  0  ${ok}`,
    ...(problems === undefined ? [] : [`  1  ${problems}`]),
    "  2  invalid command line, or a file that cannot be read",
    ...(example.includes("--table") ? ["  3  the table could not be reached, read or written"] : []),
  ]
  return `${more === "" ? "" : `${more}\n`}
Example:
  ${example}

Exit codes:
${codes.join("\n")}`
}
