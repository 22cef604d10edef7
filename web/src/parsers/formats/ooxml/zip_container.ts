/**
 * Read ZIP archives (OOXML, OpenDocument, EPUB). The sizes that an archive states are checked before its members are
 * unpacked. A member with more bytes than stated is rejected while it is unpacked.
 */

import { Inflate } from "fflate";
import { crc32 } from "../../../lib/crc32.ts";
import { latin1 } from "../../charset/detect.ts";
import { isOutOfMemory, LIMITS, Unreadable } from "../../result.ts";
import { parseXml, type XmlNode } from "../../markup/xml.ts";

interface Member {
  method: number;
  encrypted: boolean;
  checksum: number;
  packedSize: number;
  size: number;
  offset: number;
}

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
/** Value that says that the number is in the ZIP64 extra field, because it may not fit 32 bits. */
const IN_ZIP64_FIELD = 0xffffffff;
/** Id of the ZIP64 extra field. */
const ZIP64_FIELD = 1;
const [STORED, DEFLATED] = [0, 8];
const SLICE = 65_536;
/** Names of images, audio, video and fonts. No parser unpacks them, so their size is not checked. */
const MEDIA =
  /\.(?:bmp|dib|emf|emz|wmf|wmz|png|jpe?g|jfif|gif|tiff?|svg|webp|wdp|mp[34]|m4[av]|wav|avi|mov|[ot]tf|odttf|fntdata)$/iu;

export class Archive {
  readonly #data: Uint8Array;
  readonly #members: Map<string, Member>;
  #byNormalizedName: Map<string, string> | undefined;

  /** Open an archive. Throw Unreadable if the members that parsers may read would be too large when unpacked. */
  constructor(data: Uint8Array) {
    this.#data = data;
    this.#members = directory(data);
    const members = [...this.#members].filter(([name]) => !MEDIA.test(name)).map(([, member]) => member);
    const total = members.reduce((sum, { size }) => sum + size, 0);
    const isBomb = ({ size, packedSize }: Member) =>
      size > 2 ** 20 && size > LIMITS.expansionRatio * Math.max(1, packedSize);
    if (total > LIMITS.expansionBytes || members.some(isBomb)) throw new Unreadable("TOO_EXPANSIVE");
  }

  has(name: string): boolean {
    return this.#members.has(name);
  }

  /**
   * Return the name of the member that an address refers to. Files of some programs have addresses that differ from the
   * names in case or percent-encoding.
   */
  resolve(address: string): string | undefined {
    this.#byNormalizedName ??= new Map([...this.#members.keys()].map((name) => [normalized(name), name]));
    const exact = [percentDecoded(address), address].find((name) => this.has(name));
    return exact ?? this.#byNormalizedName.get(normalized(address));
  }

  bytes(name: string): Uint8Array {
    const member = this.#members.get(name);
    if (!member) throw new Unreadable("DAMAGED");
    if (member.size > LIMITS.expansionBytes) throw new Unreadable("TOO_EXPANSIVE");
    return unpack(this.#data, member);
  }

  /** Return whether the member with this name exists and contains an ASCII text. */
  mentions(name: string, text: string): boolean {
    return this.has(name) && latin1(this.bytes(name)).includes(text);
  }

  xml(name: string): XmlNode {
    return parseXml(this.bytes(name));
  }

  /** Return the root of the first of these members that exists. Return undefined if none exists or it is damaged. */
  optionalXml(names: readonly string[]): XmlNode | undefined {
    const name = names.find((name) => this.has(name));
    try {
      return name === undefined ? undefined : this.xml(name);
    } catch (error) {
      if (isOutOfMemory(error) || (error instanceof Unreadable && error.code !== "DAMAGED")) throw error;
      return undefined;
    }
  }
}

function normalized(name: string): string {
  return percentDecoded(name).toLowerCase();
}

function percentDecoded(address: string): string {
  return address.replace(/(?:%[0-9a-f]{2})+/giu, (encoded) => {
    const bytes = encoded.split("%").slice(1);
    return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 16)));
  });
}

/**
 * Read the central directory. Return a map from the names of members to the members. Backslashes in names, which some
 * programs write, are replaced with slashes.
 */
export function directory(data: Uint8Array): Map<string, Member> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const end = endOfDirectory(view);
  const count = view.getUint16(end + 10, true);
  if (count > LIMITS.members) throw new Unreadable("TOO_EXPANSIVE");
  const members = new Map<string, Member>();
  let entry = view.getUint32(end + 16, true);
  for (let n = 0; n < count; n++) {
    if (entry + 46 > end || view.getUint32(entry, true) !== ENTRY) throw new Unreadable("DAMAGED");
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((field) =>
      view.getUint16(entry + field, true),
    );
    const extra = entry + 46 + nameLength!;
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

/** Replace numbers that are in the ZIP64 extra field. Some programs use this field for small numbers, too. */
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

/** Return the offset of the record that ends the directory. A comment of at most 65,535 bytes follows the record. */
function endOfDirectory(view: DataView): number {
  const last = view.byteLength - 22;
  for (let offset = last; offset >= 0 && offset >= last - 65_535; offset--)
    if (view.getUint32(offset, true) === END) return offset;
  throw new Unreadable("DAMAGED");
}

/** Unpack a member. Throw Unreadable if its content does not have the stated size and checksum. */
export function unpack(data: Uint8Array, member: Member): Uint8Array {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const { offset, packedSize, size, method, checksum } = member;
  if (offset + 30 > data.length || view.getUint32(offset, true) !== LOCAL) throw new Unreadable("DAMAGED");
  const start = offset + 30 + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
  const packed = data.subarray(start, start + packedSize);
  if (method !== STORED && method !== DEFLATED) throw new Unreadable("DAMAGED");
  const content = method === STORED ? packed : inflate(packed, size);
  if (content.length !== size || crc32(content) !== checksum) throw new Unreadable("DAMAGED");
  return content;
}

function inflate(packed: Uint8Array, size: number): Uint8Array {
  const content = new Uint8Array(size);
  let length = 0;
  const stream = new Inflate((piece) => {
    if (length + piece.length > size) throw new Unreadable("DAMAGED");
    content.set(piece, length);
    length += piece.length;
  });
  for (let from = 0; from < packed.length; from += SLICE)
    stream.push(packed.subarray(from, from + SLICE), from + SLICE >= packed.length);
  return content.subarray(0, length);
}
