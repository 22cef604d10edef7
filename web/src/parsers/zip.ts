/** Read ZIP archives from memory or from a file. A member with more bytes than stated is rejected while it is unpacked. */

import { Inflate } from "fflate";
import { LIMITS, Unreadable } from "./result.ts";

export interface Member {
  method: number;
  encrypted: boolean;
  checksum: number;
  packedSize: number;
  size: number;
  offset: number;
}

const END = 0x06054b50;
const ZIP64_END = 0x06064b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 65_535;
const MAX_DIRECTORY_BYTES = 2 ** 24;
const LOCAL_BYTES = 30;
/** Value that says that the number is in the ZIP64 extra field, because it may not fit 32 bits. */
const IN_ZIP64_FIELD = 0xffffffff;
/** Id of the ZIP64 extra field. */
const ZIP64_FIELD = 1;
const [STORED, DEFLATED] = [0, 8];
/** Number of bytes that are unpacked at a time. It is small, because the content can be a thousand times as large. */
const SLICE = 65_536;

/** Error that is thrown if an archive has no directory that ends at its end record, as after a truncation. */
export class DirectoryMissing extends Unreadable {
  constructor() {
    super("DAMAGED");
  }
}

/** Read the directory at the end of a file. */
export async function readDirectoryOf(file: Blob): Promise<Map<string, Member>> {
  const from = Math.max(0, file.size - MAX_DIRECTORY_BYTES);
  return readDirectory(await bytesOf(file, from, file.size), from);
}

/**
 * Read the central directory. Return a map from the names of members to the members. Backslashes in names, which some
 * programs write, are replaced with slashes. `data` is the part of the file after `from`.
 */
export function readDirectory(data: Uint8Array, from = 0): Map<string, Member> {
  const view = viewOf(data);
  const end = endOfDirectory(view, from);
  const count = view.getUint16(end + 10, true);
  const first = view.getUint32(end + 16, true) - from;
  if (count > LIMITS.members || first < 0) throw new Unreadable("TOO_EXPANSIVE");
  const members = new Map<string, Member>();
  for (let n = 0, entry = first; n < count; n++) {
    if (entry + 46 > end || view.getUint32(entry, true) !== ENTRY) throw new Unreadable("DAMAGED");
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((field) =>
      view.getUint16(entry + field, true),
    );
    const extra = entry + 46 + nameLength!;
    if (extra + extraLength! > end) throw new Unreadable("DAMAGED");
    const [size, packedSize, offset] = withZip64(
      view,
      [24, 20, 42].map((field) => view.getUint32(entry + field, true)),
      extra,
      extra + extraLength!,
    );
    members.set(new TextDecoder().decode(data.subarray(entry + 46, extra)).replaceAll("\\", "/"), {
      encrypted: (view.getUint16(entry + 8, true) & 1) === 1,
      method: view.getUint16(entry + 10, true),
      checksum: view.getUint32(entry + 16, true),
      packedSize: packedSize!,
      size: size!,
      offset: offset!,
    });
    entry = extra + extraLength! + commentLength!;
  }
  return members;
}

/**
 * Replace each placeholder in `numbers` with its value from the ZIP64 extra field, which lies between `from` and `to`.
 * A placeholder (0xffffffff) normally means that the number does not fit in 32 bits, but some programs always write it.
 */
function withZip64(view: DataView, numbers: readonly number[], from: number, to: number): number[] {
  if (!numbers.includes(IN_ZIP64_FIELD)) return [...numbers];
  for (let field = from; field + 4 <= to; field += 4 + view.getUint16(field + 2, true)) {
    if (view.getUint16(field, true) !== ZIP64_FIELD) continue;
    let next = field + 4;
    return numbers.map((number) => {
      if (number !== IN_ZIP64_FIELD) return number;
      next += 8;
      if (next > to) throw new Unreadable("DAMAGED");
      return Number(view.getBigUint64(next - 8, true));
    });
  }
  return [...numbers];
}

/**
 * Return the offset of the record that ends the directory. A comment follows the record. Skip records that do not fit
 * their directory: those of a ZIP inside a truncated ZIP, and bytes of the comment that look like a record.
 */
function endOfDirectory(view: DataView, from: number): number {
  const last = view.byteLength - END_BYTES;
  for (let at = last; at >= 0 && at >= last - MAX_COMMENT_BYTES; at--) {
    if (view.getUint32(at, true) !== END) continue;
    const directoryEnd = view.getUint32(at + 12, true) + view.getUint32(at + 16, true) - from;
    if (directoryEnd === at) return at;
    // Some programs write ZIP64 records between the directory and the end record, even for small archives.
    const hasGap = directoryEnd >= 0 && directoryEnd + 4 <= at;
    if (hasGap && view.getUint32(directoryEnd, true) === ZIP64_END) return at;
  }
  throw new DirectoryMissing();
}

/** Unpack a member. Throw Unreadable if its content does not have the stated size and checksum. */
export function unpack(data: Uint8Array, member: Member): Uint8Array {
  const header = data.subarray(member.offset, member.offset + LOCAL_BYTES);
  const unpackSlice = unpacker(member);
  const content = new Uint8Array(member.size);
  let length = 0;
  for (const [from, to] of slicesOf(header, member, data.length)) {
    for (const piece of unpackSlice(data.subarray(from, to))) {
      content.set(piece, length);
      length += piece.length;
    }
  }
  return content;
}

/** Unpack a member of a file piece by piece, with the checks of `unpack`. */
export async function* unpackFrom(file: Blob, member: Member): AsyncGenerator<Uint8Array> {
  const header = await bytesOf(file, member.offset, member.offset + LOCAL_BYTES);
  const unpackSlice = unpacker(member);
  for (const [from, to] of slicesOf(header, member, file.size)) {
    yield* unpackSlice(await bytesOf(file, from, to));
  }
}

/** Return a function that unpacks the next slice of a member. */
function unpacker({ method, packedSize, size, checksum }: Member) {
  if (method !== STORED && method !== DEFLATED) throw new Unreadable("DAMAGED");
  const pieces: Uint8Array[] = [];
  const inflate = new Inflate((piece) => pieces.push(piece));
  let [packedLength, length, sum] = [0, 0, ~0];
  return (packed: Uint8Array): Uint8Array[] => {
    packedLength += packed.length;
    const isLast = packedLength === packedSize;
    if (method === STORED) pieces.push(packed);
    else inflate.push(packed, isLast);
    for (const piece of pieces) {
      length += piece.length;
      if (length > size) throw new Unreadable("DAMAGED");
      for (const byte of piece) sum = CRC32[(sum ^ byte) & 0xff]! ^ (sum >>> 8);
    }
    if (isLast && (length !== size || ~sum >>> 0 !== checksum)) throw new Unreadable("DAMAGED");
    return pieces.splice(0);
  };
}

const CRC32 = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

/** Yield the start and end of each slice of a member's content, which follows the local header. */
function* slicesOf(header: Uint8Array, { offset, packedSize }: Member, fileSize: number) {
  const view = viewOf(header);
  if (header.length < LOCAL_BYTES || view.getUint32(0, true) !== LOCAL) throw new Unreadable("DAMAGED");
  let from = offset + LOCAL_BYTES + view.getUint16(26, true) + view.getUint16(28, true);
  const end = from + packedSize;
  if (end > fileSize) throw new Unreadable("DAMAGED");
  do yield [from, Math.min(from + SLICE, end)] as const;
  while ((from += SLICE) < end);
}

async function bytesOf(file: Blob, from: number, to: number): Promise<Uint8Array> {
  return new Uint8Array(await file.slice(from, to).arrayBuffer());
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
