import type { ActivityOverview } from "../overview/overview.ts"

/** Time without an update after which the page is stale. Updates come every two seconds. */
const STALE_MS = 5_000
/** Time after which the page connects again, if the server has refused it. */
const AGAIN_MS = 5_000

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

  const receive = (overview: ActivityOverview): void => {
    updatedMs = Date.now()
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
      if (response.ok) receive(await response.json())
      else
        onState(
          response.status === 403
            ? "You may no longer see this page."
            : `The server responds with ${response.status}.`,
        )
    } catch {
      // The server is gone. The next attempt may succeed.
    }
  }
  document.addEventListener("visibilitychange", open)
  setInterval(() => {
    if (!document.hidden && Date.now() - updatedMs > STALE_MS)
      onState("No update arrives. Connecting again …")
  }, 1_000)
  open()
}
