import { writeFileSync } from "node:fs"
import { ROOT } from "../docs/documents.ts"
import { runBoard } from "./board-run.ts"

// Writes docs/pictures/dashboard.json, from which the picture of the dashboard is drawn. It needs promtool.

writeFileSync(`${ROOT}docs/pictures/dashboard.json`, `${JSON.stringify(await runBoard())}\n`)
