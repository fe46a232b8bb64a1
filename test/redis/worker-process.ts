// An instance of an app in its own process. The instance receives its app and its orders from its parent process.
import "./clock-ahead.ts"
import { type App, askingInstance, type Order, type Told } from "./asking-instance.ts"

const app = JSON.parse(process.argv[2] ?? "") as App
// Exit when the parent has exited. Otherwise an instance that was frozen while it loaded the library would never
// exit.
process.once("disconnect", () => process.exit())
const follow = await askingInstance(app, (told: Told) => process.send?.(told))
process.on("message", (order: Order) => {
  follow(order)
  // If the library closes everything that it opened, nothing keeps the process alive after this disconnect.
  if (order.do === "leave") {
    process.removeAllListeners("disconnect")
    process.disconnect()
  }
})
