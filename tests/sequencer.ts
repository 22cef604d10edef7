/** Run the slow e2e and sync files first. If they ran last, most workers would be idle at the end. */

import { BaseSequencer, type TestSpecification } from "vitest/node";

const FOLDERS = ["/tests/e2e/", "/tests/sync/"];

export default class BrowserFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => priority(a) - priority(b));
  }
}

function priority({ moduleId }: TestSpecification): number {
  const index = FOLDERS.findIndex((folder) => moduleId.includes(folder));
  return index < 0 ? FOLDERS.length : index;
}
