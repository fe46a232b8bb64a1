import { setPriority } from "node:os"
import { mutateScripts } from "./lua/mutate-scripts.ts"
import { mutateRoom } from "./mutate-room.ts"
import { ROOMS } from "./rooms.ts"

// mutation ROOM [FILE…]: mutates the sources of a room, one place at a time. Prints the changes that no test notices,
// and exits with 1 if such changes exist.

const LUA = "lua"
const [room, ...only] = process.argv.slice(2)
if (room === undefined || (room !== LUA && ROOMS[room] === undefined)) {
  console.error(`Which room? mutation ${[...Object.keys(ROOMS), LUA].join(" | ")} [FILE…]`)
  process.exit(2)
}

// Also end the child processes of this process.
process.once("SIGINT", () => process.exit(130))
// Lower the priority, because a run takes long and other programs on the machine matter more.
setPriority(19)
// Use many random examples. With few examples, the tests of the scripts would miss some mutants.
if (room === LUA) process.env.TESTS = "long"
const isEveryOneNoticed = room === LUA ? await mutateScripts(only) : await mutateRoom(room, only)
process.exitCode = isEveryOneNoticed ? 0 : 1
