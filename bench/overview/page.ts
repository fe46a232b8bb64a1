import type { Machine } from "../report/machine.ts"
import type { Plot } from "./plots.ts"

/** What stands above the pictures. */
export interface About {
  readonly machine: Machine
  /** Whether the machine was steady, in a sentence. */
  readonly steadiness: string
}

/** A page of HTML that needs nothing else. */
export function pageOf({ machine, steadiness }: About, plots: readonly Plot[]): string {
  const { cpu, cores, memoryGb, system, node, versions } = machine
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Sluice beside its peers</title>
<style>body { font: 15px system-ui, sans-serif; max-width: 1100px; margin: 2em auto } svg { max-width: 100%; height: auto }</style>
<h1>Sluice beside its peers</h1>
<p>${escaped(`${cpu}, ${cores} cores, ${memoryGb} GB, ${system}, Node ${node}.`)} ${escaped(steadiness)}</p>
<p>${escaped(packages.join(", "))}</p>
<p>Bars are medians of the rounds, in which all run in turn; the lines in them go from the least to the most. Compare within a picture.</p>
${plots.map(({ title, picture }) => `<h2>${escaped(title)}</h2>\n${picture}`).join("\n")}
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
}
