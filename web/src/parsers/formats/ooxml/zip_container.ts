/** Zip archives (OOXML, OpenDocument, EPUB): looked through before anything is unpacked, and held to what they state. */

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
  place: number;
}

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
const LONGER = 0xffffffff; // in place of a number: it stands elsewhere
const LONG = 1; // what is said further: these numbers
const [STORED, DEFLATED] = [0, 8];
const SLICE = 65_536;
/** Pictures, sounds and fonts. No parser unpacks them, so their size does not matter. */
const MEDIA =
  /\.(?:bmp|dib|emf|emz|wmf|wmz|png|jpe?g|jfif|gif|tiff?|svg|webp|wdp|mp[34]|m4[av]|wav|avi|mov|[ot]tf|odttf|fntdata)$/iu;

export class Archive {
  readonly #data: Uint8Array;
  readonly #members: Map<string, Member>;
  #near: Map<string, string> | undefined;

  /** Throw Unreadable if the members that are read would unpack to too much. */
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
   * The member that an address means: the one that is called so, or else one that comes near, because programs do not
   * agree with themselves on large letters, nor on what an address spells otherwise.
   */
  named(address: string): string | undefined {
    this.#near ??= new Map([...this.#members.keys()].map((member) => [plain(member), member]));
    return [unquoted(address), address].find((name) => this.has(name)) ?? this.#near.get(plain(address));
  }

  bytes(name: string): Uint8Array {
    const member = this.#members.get(name);
    if (!member) throw new Unreadable("DAMAGED");
    if (member.size > LIMITS.expansionBytes) throw new Unreadable("TOO_EXPANSIVE");
    return unpack(this.#data, member);
  }

  /** Whether a member has these ASCII letters. */
  mentions(name: string, letters: string): boolean {
    return this.has(name) && latin1(this.bytes(name)).includes(letters);
  }

  xml(name: string): XmlNode {
    return parseXml(this.bytes(name));
  }

  /** Return the root of the first of these members that is there; undefined if there is none or it is damaged. */
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

function plain(name: string): string {
  return unquoted(name).toLowerCase();
}

function unquoted(address: string): string {
  return address.replace(/(?:%[0-9a-f]{2})+/giu, (written) => {
    const bytes = written.split("%").slice(1);
    return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 16)));
  });
}

/** Return the members by their names, from the table at the archive's end. Some programs write backslashes in the names. */
export function directory(data: Uint8Array): Map<string, Member> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const end = endOfDirectory(view);
  const count = view.getUint16(end + 10, true);
  if (count > LIMITS.members) throw new Unreadable("TOO_EXPANSIVE");
  const members = new Map<string, Member>();
  let at = view.getUint32(end + 16, true);
  for (let n = 0; n < count; n++) {
    if (at + 46 > end || view.getUint32(at, true) !== ENTRY) throw new Unreadable("DAMAGED");
    const [name, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    const further = at + 46 + name!;
    const [size, packedSize, place] = longer(
      view,
      [24, 20, 42].map((offset) => view.getUint32(at + offset, true)),
      further,
      further + extra!,
    );
    members.set(new TextDecoder().decode(data.subarray(at + 46, further)).replaceAll("\\", "/"), {
      encrypted: (view.getUint16(at + 8, true) & 1) === 1,
      method: view.getUint16(at + 10, true),
      checksum: view.getUint32(at + 16, true),
      packedSize: packedSize!,
      size: size!,
      place: place!,
    });
    at = further + extra! + comment!;
  }
  return members;
}

/** Those of the numbers that stand, longer, among what is said further of an entry: a program may write small ones so, too. */
function longer(view: DataView, numbers: readonly number[], from: number, to: number): number[] {
  if (!numbers.includes(LONGER)) return [...numbers];
  for (let at = from; at + 4 <= to; at += 4 + view.getUint16(at + 2, true)) {
    if (view.getUint16(at, true) !== LONG) continue;
    let next = at + 4;
    return numbers.map((number) => {
      if (number !== LONGER) return number;
      next += 8;
      if (next > to) throw new Unreadable("DAMAGED");
      return Number(view.getBigUint64(next - 8, true));
    });
  }
  return [...numbers];
}

/** It stands before a remark of at most 65,535 bytes. */
function endOfDirectory(view: DataView): number {
  const last = view.byteLength - 22;
  for (let at = last; at >= 0 && at >= last - 65_535; at--) if (view.getUint32(at, true) === END) return at;
  throw new Unreadable("DAMAGED");
}

/** One member; never more bytes than its entry states, which were looked at before. */
export function unpack(data: Uint8Array, member: Member): Uint8Array {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const { place, packedSize, size, method, checksum } = member;
  if (place + 30 > data.length || view.getUint32(place, true) !== LOCAL) throw new Unreadable("DAMAGED");
  const start = place + 30 + view.getUint16(place + 26, true) + view.getUint16(place + 28, true);
  const packed = data.subarray(start, start + packedSize);
  if (method !== STORED && method !== DEFLATED) throw new Unreadable("DAMAGED");
  const content = method === STORED ? packed : inflate(packed, size);
  if (content.length !== size || crc32(content) !== checksum) throw new Unreadable("DAMAGED");
  return content;
}

function inflate(packed: Uint8Array, size: number): Uint8Array {
  const content = new Uint8Array(size);
  let at = 0;
  const inflating = new Inflate((piece) => {
    if (at + piece.length > size) throw new Unreadable("DAMAGED");
    content.set(piece, at);
    at += piece.length;
  });
  for (let from = 0; from < packed.length; from += SLICE)
    inflating.push(packed.subarray(from, from + SLICE), from + SLICE >= packed.length);
  return content.subarray(0, at);
}
