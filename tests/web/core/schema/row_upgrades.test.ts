/** Rows of version 0 become valid rows of version 1, as on the server. */

import cases from "../../../conformance/row_upgrades.json";
import { upgradeRow } from "../../../../web/src/core/schema/row_upgrades.ts";
import { matchesSchema, type Schema } from "../../../../web/src/core/schema/jsonSchemaValidator.ts";
import { schemas } from "../../../../web/src/storage/schemas.ts";
import type { Collections } from "../../../../web/src/core/schema/rows.ts";

const name = (collection: string) => collection as keyof Collections;

test.each(cases)("$name", ({ collection, before, after }) => {
  expect(upgradeRow(name(collection), before)).toEqual(after);
});

test.each(cases)("the upgraded row fits its schema: $name", ({ collection, after }) => {
  const { _deleted: _, ...row } = after as Record<string, unknown>;
  expect(matchesSchema(schemas[name(collection)] as Schema, row)).toBe(true);
});
