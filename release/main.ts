import { fileURLToPath } from "node:url"
import { imagesToPin } from "./images.ts"
import { missingBeforePublishing } from "./missing.ts"

// Lists what only a publisher knows and the packages do not contain. With --required, fails until nothing is missing.

const HOW = `
Set an address in all packages, from the root of the repository:
  for p in packages/*; do (cd $p && npm pkg set homepage=URL bugs.url=URL repository.type=git repository.url=git+URL.git repository.directory=$p); done
`

const root = fileURLToPath(new URL("..", import.meta.url))
// Old images do not fail CI, because no commit made them old.
const missing = [...missingBeforePublishing(root), ...imagesToPin(root, Date.now())]
if (missing.length === 0) console.log("Nothing is missing: the packages can be published.")
else {
  console.log(
    `Missing before the packages can be published:\n${missing.map((line) => `- ${line}`).join("\n")}`,
  )
  console.log(HOW)
  if (process.argv.includes("--required")) process.exitCode = 1
}
