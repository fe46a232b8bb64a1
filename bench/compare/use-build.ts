import { register } from "node:module"
import { BUILD } from "./build.ts"

// Imported before a worker: it then measures the build that the environment names.
register("./build-hooks.ts", import.meta.url, { data: process.env[BUILD] })
