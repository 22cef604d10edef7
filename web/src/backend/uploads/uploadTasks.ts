/** The upload tasks that the page shows. */

import { BehaviorSubject } from "rxjs";
import { isFinished, transition, type Change, type Task } from "../../core/documents/uploadTask.ts";

export class UploadTasks {
  readonly list$ = new BehaviorSubject<Task[]>([]);

  find(id: string): Task | undefined {
    return this.list$.value.find((task) => task.id === id);
  }

  /** Add a task. It replaces an earlier task of the same file. */
  add(file: Pick<Task, "id" | "name" | "size" | "sessionId">, state: Change = { stage: "waiting" }): void {
    const others = this.list$.value.filter(({ id }) => id !== file.id);
    this.list$.next([...others, { ...file, documentId: null, ...state }]);
  }

  update(id: string, change: Change): void {
    this.list$.next(this.list$.value.map((task) => (task.id === id ? transition(task, change) : task)));
  }

  /** Remove finished tasks. */
  clearFinished(): void {
    this.list$.next(this.list$.value.filter((task) => !isFinished(task)));
  }
}
