/** The upload tasks that the page shows. */

import { BehaviorSubject } from "rxjs";
import { isFinished, type Task } from "../../core/documents/uploadTask.ts";

export class UploadTasks {
  readonly list$ = new BehaviorSubject<Task[]>([]);

  find(id: string): Task | undefined {
    return this.list$.value.find((task) => task.id === id);
  }

  add(file: Pick<Task, "id" | "name" | "size" | "sessionId">, change: Partial<Task> = {}): void {
    const task: Task = {
      ...file,
      stage: "waiting",
      done: 0,
      of: 0,
      documentId: null,
      existing: false,
      code: null,
      message: null,
      ...change,
    };
    this.list$.next([...this.list$.value.filter(({ id }) => id !== file.id), task]);
  }

  /** Update a task. A cancelled task stays unchanged. */
  update(id: string, change: Partial<Task>): void {
    const told = (task: Task) =>
      task.id === id && task.stage !== "cancelled" ? { ...task, ...change } : task;
    this.list$.next(this.list$.value.map(told));
  }

  /** Remove finished tasks. */
  clearFinished(): void {
    this.list$.next(this.list$.value.filter((task) => !isFinished(task)));
  }
}
