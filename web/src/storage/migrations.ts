/**
 * Migration strategies by collection and version, for instance `{ facts: { 1: (row) => ({ ...row, colour: "" }) } }`.
 */

import type { MigrationStrategies } from "rxdb/plugins/core";
import type { Collections } from "../core/schema/rows.ts";

export type Migrations = { [Name in keyof Collections]?: MigrationStrategies<any> };

export const migrations: Migrations = {};
