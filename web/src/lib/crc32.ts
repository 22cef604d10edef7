/** Compute the checksum of ZIP entries. */

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

/** Return the CRC-32 of data that arrives in pieces; `before` is the result for the preceding pieces. */
export function crc32(data: Uint8Array, before = 0): number {
  let sum = ~before;
  for (const byte of data) sum = TABLE[(sum ^ byte) & 0xff]! ^ (sum >>> 8);
  return ~sum >>> 0;
}
