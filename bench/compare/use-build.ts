import { register } from "node:module"
import { BUILD } from "./build.ts"

// Imported before a worker, so that it measures the build in the environment variable.
register("./build-hooks.ts", import.meta.url, { data: process.env[BUILD] })
