import { register } from "node:module"
import { ROOT } from "./root.ts"

// Imported before the program that counts a request. Every package of Sluice is then loaded from the sources of the
// tree in the environment variable.
register("./source-hooks.ts", import.meta.url, { data: process.env[ROOT] })
