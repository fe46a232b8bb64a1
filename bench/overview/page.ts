import type { Machine } from "../report/machine.ts"
import type { Plot } from "./plots.ts"

/** The facts above the pictures. */
export interface About {
  readonly machine: Machine
  /** A sentence on whether the machine was steady. */
  readonly steadiness: string
}

/** Returns a self-contained HTML page. */
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
<p>A bar is the median of the rounds, in which all contenders run in turn. The line in it goes from the least to the most. Compare only within a picture.</p>
${plots.map(({ title, picture }) => `<h2>${escaped(title)}</h2>\n${picture}`).join("\n")}
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
}
