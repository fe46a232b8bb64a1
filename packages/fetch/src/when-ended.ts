/**
 * Calls `onEnd` when the body of the response has ended, has failed or is canceled, or immediately if no body is sent.
 * Return the result to the server, because it is a copy if the response has a body.
 */
export function whenEnded({ method }: Request, response: Response, onEnd: () => void): Response {
  const { body } = response
  if (body === null || method === "HEAD") {
    onEnd()
    return response
  }
  return new Response(watched(body, onEnd), response)
}

/** Returns a stream with the chunks of `body`, which are only read when the server requests them. */
function watched(body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) {
            controller.enqueue(value)
            return
          }
          controller.close()
        } catch (error) {
          controller.error(error)
        }
        onEnd()
      },
      cancel(reason) {
        onEnd()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
