import { until } from "../../../test/servers/until.ts"
import type { Drill } from "../drill.ts"
import { runOutage } from "../outage.ts"

const WANTS =
  "every request is answered within a second without a server error, and Redis counts again when it is back"

export const frozen: Drill = {
  name: "frozen",
  asks: "Redis freezes (SIGSTOP) with its connections open",
  wants: WANTS,
  run: (world) =>
    runOutage(world, {
      isAtStart: false,
      begin: (redis) => redis.freeze(),
      end: async (redis) => {
        redis.thaw()
        await until("Redis answers", async () => (await redis.command("PING")) === "PONG")
      },
    }),
}

export const closed: Drill = {
  name: "closed",
  asks: "Redis is killed: connections break, and new ones are refused",
  wants: WANTS,
  run: (world) =>
    runOutage(world, {
      isAtStart: false,
      begin: (redis) => redis.kill(),
      end: (redis) => redis.start(),
    }),
}

export const atStart: Drill = {
  name: "at start",
  asks: "the app starts while Redis is not running",
  wants: `it starts, ${WANTS}`,
  run: (world) =>
    runOutage(world, {
      isAtStart: true,
      begin: (redis) => redis.kill(),
      end: (redis) => redis.start(),
    }),
}
