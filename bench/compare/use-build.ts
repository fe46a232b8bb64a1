import { register } from "node:module"
import { BUILD } from "./build.ts"

// This module is imported before a worker, so that the worker measures the build in the environment variable.
register("./build-hooks.ts", import.meta.url, { data: process.env[BUILD] })
