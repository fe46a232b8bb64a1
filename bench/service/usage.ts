import { answerTasks } from "../contender-process.ts"
import type { Usage } from "./program.ts"

// Imported before a program that is measured: it then answers what it has used.
answerTasks((): Usage => {
  const { user, system } = process.cpuUsage()
  return { cpuUs: user + system, rssBytes: process.memoryUsage.rss() }
})
