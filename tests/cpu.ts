/** Return the CPU time of a task in seconds. Unlike wall-clock time, it hardly depends on other programs. */
export function cpuSeconds(task: () => unknown): number {
  const before = process.cpuUsage();
  task();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
