import { setPriority } from "node:os"
import { mutateScripts } from "./lua/mutate-scripts.ts"
import { mutateRoom } from "./mutate-room.ts"
import { ROOMS } from "./rooms.ts"

// mutation ROOM [FILE…]: mutates the sources of a room, one place at a time, and prints the changes that no test
// notices. Exits with 1 if there are any.

const LUA = "lua"
const [room, ...only] = process.argv.slice(2)
if (room === undefined || (room !== LUA && ROOMS[room] === undefined)) {
  console.error(`Which room? mutation ${[...Object.keys(ROOMS), LUA].join(" | ")} [FILE…]`)
  process.exit(2)
}

// Also end the child processes.
process.once("SIGINT", () => process.exit(130))
// A run takes long, so everything else on the machine has priority.
setPriority(19)
// The tests of the scripts search for mistakes. With few examples, they would miss some mutants.
if (room === LUA) process.env.TESTS = "long"
const isEveryOneNoticed = room === LUA ? await mutateScripts(only) : await mutateRoom(room, only)
process.exitCode = isEveryOneNoticed ? 0 : 1
