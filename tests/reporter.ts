/** Print all failures at the end of a run, because CI services show the end of the output. */

import type { Reporter, TestModule } from "vitest/node";

interface Failure {
  name: string;
  errors: readonly { message?: string; stacks?: readonly { file: string; line: number }[] }[];
}

export default class FailureReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = modules.flatMap((module) => failuresOf(module).map((failure) => format(module, failure)));
    // Other reporters print in this hook, too.
    if (lines.length) process.once("exit", () => console.error(`\n${lines.join("\n")}`));
  }
}

function failuresOf(module: TestModule): Failure[] {
  const tests = [...module.children.allTests("failed")];
  const suites = [...module.children.allSuites()];
  const failures: Failure[] = [
    { name: "(the file)", errors: module.errors() },
    ...suites.map((suite) => ({ name: suite.fullName, errors: suite.errors() })),
    ...tests.map((test) => ({ name: test.fullName, errors: test.result().errors ?? [] })),
  ];
  return failures.filter(({ errors }) => errors.length > 0);
}

function format(module: TestModule, { name, errors }: Failure): string {
  const [first] = (errors[0]?.message ?? "").split("\n");
  const line = errors[0]?.stacks?.find(({ file }) => file.endsWith(module.relativeModuleId))?.line;
  return `FAILED ${module.relativeModuleId}${line ? `:${line}` : ""} > ${name}: ${first}`;
}
