/**
 * Documents that are ZIP archives (OOXML, OpenDocument, EPUB). The sizes that an archive states are checked before its
 * members are unpacked. A member with more bytes than stated is rejected while it is unpacked.
 */

import { latin1 } from "../../charset/detect.ts";
import { isOutOfMemory, LIMITS, Unreadable } from "../../result.ts";
import { parseXml, type XmlNode } from "../../markup/xml.ts";
import { readDirectory, unpack, type Member } from "../../zip.ts";

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
    this.#members = readDirectory(data);
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
