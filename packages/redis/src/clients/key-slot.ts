/** Number of slots among which a cluster divides its keys. */
const SLOTS = 16_384

/** CRC-16/XMODEM of every byte: polynomial 0x1021, no reflection, starts at 0. */
const CRC = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/**
 * Returns the slot of a key, 0 to 16383 (Redis cluster specification, "Key distribution model" and "Hash tags"). Hashes
 * the text between the first { and the first } after it, in UTF-8. If there is no such text, hashes the whole key.
 */
export function keySlot(key: string): number {
  const open = key.indexOf("{")
  const close = open === -1 ? -1 : key.indexOf("}", open + 1)
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key
  let crc = 0
  for (let i = 0; i < hashed.length; i++) {
    const code = hashed.charCodeAt(i)
    if (code > 0x7f) return slotOfBytes(Buffer.from(hashed))
    crc = next(crc, code)
  }
  return crc % SLOTS
}

function slotOfBytes(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) crc = next(crc, byte)
  return crc % SLOTS
}

function next(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (CRC[(crc >> 8) ^ byte] as number)
}
