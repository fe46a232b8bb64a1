import { register } from "node:module"
import { ROOT } from "./root.ts"

// Imported before the request is counted: every package of Sluice is then read from the sources of the tree that the environment names.
register("./source-hooks.ts", import.meta.url, { data: process.env[ROOT] })
