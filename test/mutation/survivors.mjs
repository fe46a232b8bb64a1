import { relative } from "node:path"

// A reporter of Stryker: prints each mutant that no test has noticed as soon as that is known. What Stryker prints by itself
// comes at the end, which may be an hour later. Its workers load this file, too, and they know no TypeScript.

const survivors = {
  onMutantTested({ status, fileName, location, mutatorName, replacement }) {
    if (status !== "Survived" && status !== "NoCoverage") return
    const place = `${relative(process.cwd(), fileName)}:${location.start.line}:${location.start.column}`
    console.log(`${status}: ${place} ${mutatorName} -> ${replacement ?? ""}`)
  },
}

export const strykerPlugins = [{ kind: "Reporter", name: "survivors", value: survivors }]
