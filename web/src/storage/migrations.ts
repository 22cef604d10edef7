/** From one schema of a collection to the next: `{ facts: { 1: (row) => ({ ...row, colour: "" }) } }`. None yet. */

import type { MigrationStrategies } from "rxdb/plugins/core";
import type { Collections } from "../core/schema/rows.ts";

export type Migrations = { [Name in keyof Collections]?: MigrationStrategies<any> };

export const migrations: Migrations = {};
