// An instance of an app in its own process. The instance gets its app and its orders from its parent process.
import "./clock-ahead.ts"
import { type App, askingInstance, type Order, type Told } from "./asking-instance.ts"

const app = JSON.parse(process.argv[2] ?? "") as App
// Exit when the parent is gone. Otherwise an instance that is frozen while it loads the library would stay behind.
process.once("disconnect", () => process.exit())
const follow = await askingInstance(app, (told: Told) => process.send?.(told))
process.on("message", (order: Order) => {
  follow(order)
  // If the library frees all that it opened, nothing else keeps the process alive.
  if (order.do === "leave") {
    process.removeAllListeners("disconnect")
    process.disconnect()
  }
})
