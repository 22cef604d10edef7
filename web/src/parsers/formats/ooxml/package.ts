/** Read the relations between the members of an Office file. */

import type { Archive } from "./zip_container.ts";
import { Unreadable } from "../../result.ts";
import { elements } from "../../markup/xml.ts";

export interface Relation {
  id: string;
  type: string;
  /** Name of the member that the relation refers to. */
  target: string;
}

/**
 * Return the relations of a member to members of the same archive. External relations are left out, because their
 * addresses may be invalid.
 */
export function relationsOf(archive: Archive, member: string): Relation[] {
  const slash = member.lastIndexOf("/") + 1;
  const relationsMember = archive.resolve(`${member.slice(0, slash)}_rels/${member.slice(slash)}.rels`);
  if (relationsMember === undefined) return [];
  const internal = elements(archive.xml(relationsMember)).filter(
    ({ attributes }) => attributes.get("TargetMode") !== "External",
  );
  return internal.map(({ attributes }) => {
    const address = new URL(attributes.get("Target") ?? "", `zip:///${member}`).pathname.slice(1);
    return {
      id: attributes.get("Id") ?? "",
      type: attributes.get("Type") ?? "",
      target: archive.resolve(address) ?? address,
    };
  });
}

/**
 * Return the name of the main member: the one that the package's relations name, or else `usual`. Throw Unreadable if
 * neither exists.
 */
export function mainOf(archive: Archive, usual: string): string {
  const related = byType(relationsOf(archive, ""), "officeDocument").find((target) => archive.has(target));
  const main = related ?? archive.resolve(usual);
  if (main === undefined) throw new Unreadable("DAMAGED");
  return main;
}

export function byId(relations: readonly Relation[], id: string | undefined): string {
  const relation = relations.find((relation) => relation.id === id);
  if (!relation) throw new Unreadable("DAMAGED");
  return relation.target;
}

/** Return the targets of all relations of a type. `type` is the last segment of the type's URL. */
export function byType(relations: readonly Relation[], type: string): string[] {
  return relations.filter((relation) => relation.type.endsWith(`/${type}`)).map(({ target }) => target);
}
