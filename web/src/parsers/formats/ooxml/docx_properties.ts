/** Read the properties of paragraphs, runs, styles and levels in Word. Each property is an element with a value. */

import { find, type XmlNode } from "../../markup/xml.ts";

/** Return the value of the element at a path, or "". */
export function value(node: XmlNode | undefined, ...path: string[]): string {
  return find(node, ...path)?.attributes.get("w:val") ?? "";
}

/** Return whether a property is on, or undefined if it is not specified. */
export function isOn(properties: XmlNode | undefined, name: string): boolean | undefined {
  const property = find(properties, name);
  return property && !["0", "false", "off"].includes(property.attributes.get("w:val") ?? "");
}
