import { apacheFormat } from "./apache.ts"
import type { LogFormat } from "./format.ts"

/** Apache's combined format after the name of the virtual host, as Debian configures it. */
export const vhostCombined: LogFormat = apacheFormat(
  '%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"',
  "vhost_combined",
)
