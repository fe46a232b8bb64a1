#!/usr/bin/env node
try {
  await import("../dist/main.js")
} catch (error) {
  if (error.code !== "SLUICE_NODE_TOO_OLD") throw error
  console.error(`error: ${error.message}`)
  process.exitCode = 1
}
