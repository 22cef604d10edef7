/** Migration strategies by collection and version. */

import type { MigrationStrategies } from "rxdb/plugins/core";
import type { Collections } from "../core/schema/rows.ts";
import { upgradeRow } from "../core/schema/row_upgrades.ts";

export type Migrations = { [Name in keyof Collections]?: MigrationStrategies<any> };

const toVersion1 = (name: keyof Collections): MigrationStrategies<any> => ({
  1: (row) => upgradeRow(name, row),
});

export const migrations: Migrations = {
  documents: toVersion1("documents"),
  vectorEmbeddings: toVersion1("vectorEmbeddings"),
  projects: toVersion1("projects"),
  sessions: toVersion1("sessions"),
  episodes: toVersion1("episodes"),
};
