// An instance of an app in a worker thread.
import { parentPort, workerData } from "node:worker_threads"
import { type App, askingInstance, type Order } from "./asking-instance.ts"

if (parentPort === null) throw new Error("this is no worker thread")
const port = parentPort
const follow = await askingInstance(workerData as App, (told) => port.postMessage(told))
port.on("message", (order: Order) => {
  follow(order)
  if (order.do === "leave") port.close()
})
