import type { ActivityOverview } from "../overview/overview.ts"

/** Time without an update after which the page is stale. Updates come every two seconds. */
const STALE_MS = 5_000
/** Time after which the page connects again, if the server has refused it. Short enough for a page without events. */
const AGAIN_MS = 3_000
const NO_UPDATE = "No update arrives. Connecting again …"

/** What a connection reports. */
export interface ConnectionListener {
  readonly onUpdate: (overview: ActivityOverview) => void
  /** Called with the reason why the page is stale, or undefined if it is not. */
  readonly onState: (problem: string | undefined) => void
}

/** Receives updates while the page is visible, and connects again after a failure. */
export function connect({ onUpdate, onState }: ConnectionListener): void {
  let source: EventSource | undefined
  let updatedMs = Date.now()
  let again: number | undefined
  /** Why the page is stale, once it is. */
  let reason = NO_UPDATE

  const receive = (overview: ActivityOverview): void => {
    updatedMs = Date.now()
    reason = NO_UPDATE
    onUpdate(overview)
    onState(undefined)
  }
  const open = (): void => {
    source?.close()
    clearTimeout(again)
    if (document.hidden) return
    source = new EventSource("events")
    source.onmessage = ({ data }) => receive(JSON.parse(data))
    source.onerror = () => {
      // The browser connects again by itself, unless the server has responded with an error.
      if (source?.readyState === EventSource.CLOSED) void poll()
    }
  }
  /** Gets the data by itself, because the server sends events to a limited number of pages. */
  const poll = async (): Promise<void> => {
    again = setTimeout(open, AGAIN_MS)
    try {
      const response = await fetch("overview.json")
      if (response.ok) {
        receive(await response.json())
        return
      }
      const { status } = response
      reason = status === 403 ? "You may no longer see this page." : `The server responds with ${status}.`
      onState(reason)
    } catch {
      // The server is gone. The next attempt may succeed.
      reason = NO_UPDATE
    }
  }
  document.addEventListener("visibilitychange", open)
  setInterval(() => {
    if (!document.hidden && Date.now() - updatedMs > STALE_MS) onState(reason)
  }, 1_000)
  open()
}
