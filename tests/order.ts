/** Run the slow browser tests first, so that no worker is idle at the end. */

import { BaseSequencer, type TestSpecification } from "vitest/node";

const FOLDERS = ["/tests/e2e/", "/tests/sync/"];

export default class Order extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

function place({ moduleId }: TestSpecification): number {
  const at = FOLDERS.findIndex((folder) => moduleId.includes(folder));
  return at < 0 ? FOLDERS.length : at;
}
