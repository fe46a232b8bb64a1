import * as crypto from "node:crypto"

// Do not import `hash` by name. Old versions of Node do not have it, and Node links imports before it runs any
// module. So a named import would fail with a message that does not mention the version.
if (crypto.hash === undefined) {
  const message = `Sluice needs Node 20.19 or a later 20.x, or Node 22.12 or later. This is Node ${process.versions.node}.`
  throw Object.assign(new Error(message), { code: "SLUICE_NODE_TOO_OLD" })
}

/** Node's function that returns the digest of a string or of bytes. */
export const hash: typeof crypto.hash = crypto.hash

/**
 * Returns "#" and 132 bits of the text's hash in 22 characters. Hashes UTF-16, because two different malformed strings
 * may have the same UTF-8 bytes.
 */
export function hashText(text: string): string {
  return `#${hash("sha256", Buffer.from(text, "utf16le"), "base64url").slice(0, 22)}`
}
