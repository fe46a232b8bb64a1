import { setPriority } from "node:os"
import { mutateScripts } from "./lua/mutate-scripts.ts"
import { mutateRoom } from "./mutate-room.ts"
import { ROOMS } from "./rooms.ts"

// mutation ROOM [FILE…]: changes the sources of a room, one place at a time, and says which changes no test notices. It ends
// with 1 when there is one.

const LUA = "lua"
const [room, ...only] = process.argv.slice(2)
if (room === undefined || (room !== LUA && ROOMS[room] === undefined)) {
  console.error(`Which room? mutation ${[...Object.keys(ROOMS), LUA].join(" | ")} [FILE…]`)
  process.exit(2)
}

// Whoever is being run is ended, too.
process.once("SIGINT", () => process.exit(130))
// It takes long: whatever else the machine does comes first.
setPriority(19)
const isEveryOneNoticed = room === LUA ? await mutateScripts(only) : await mutateRoom(room, only)
process.exitCode = isEveryOneNoticed ? 0 : 1
