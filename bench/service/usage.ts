import { answerTasks } from "../contender-process.ts"
import type { Usage } from "./program.ts"

// This module is imported before a measured program, so that the program returns its resource usage on request.
answerTasks((): Usage => {
  const { user, system } = process.cpuUsage()
  return { cpuUs: user + system, rssBytes: process.memoryUsage.rss() }
})
