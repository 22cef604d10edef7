/** Return the seconds of processor time that a task takes, which other programs on the machine do not lengthen. */
export function cpuSeconds(task: () => unknown): number {
  const before = process.cpuUsage();
  task();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
