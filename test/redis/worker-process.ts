// An instance of an app in a process of its own: takes its app and its orders from the process that forked it.
import "./clock-ahead.ts"
import { type App, askingInstance, type Order, type Told } from "./asking-instance.ts"

const app = JSON.parse(process.argv[2] ?? "") as App
// Frozen while it loads the library, a parent that is gone would leave it behind.
process.once("disconnect", () => process.exit())
const follow = await askingInstance(app, (told: Told) => process.send?.(told))
process.on("message", (order: Order) => {
  follow(order)
  // Nothing else keeps it alive then, if the library frees all that it opened.
  if (order.do === "leave") {
    process.removeAllListeners("disconnect")
    process.disconnect()
  }
})
