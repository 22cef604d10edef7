import { Box, Button, Group, Paper, Text, UnstyledButton } from "@mantine/core";
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react";
import { useEffect, useRef, useState, type FocusEvent, type ReactNode } from "react";
import { canTryAgain, inOrder, isComing, isFinished, type Task } from "../../core/documents/uploadTask.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import classes from "./documents.module.css";
import { UploadRow } from "./UploadRow.tsx";
import { t } from "../../locale/t.ts";
import { uploadSummary } from "./uploadText.ts";

/**
 * Show the added files and their progress. The list collapses when all files are added, and when an answer starts,
 * because the list would cover the answer. If all files are added during an answer, the tray closes.
 */
export function UploadTray({ tasks, isAnswering }: { tasks: readonly Task[]; isAnswering: boolean }) {
  const { api } = useAccountApi();
  const [userChoice, setUserChoice] = useState<boolean>();
  // The number of files when the last answer started. The list stays collapsed while `tasks` has this many.
  const [collapsedAt, setCollapsedAt] = useState(0);
  const taskCount = useRef(tasks.length);
  taskCount.current = tasks.length;
  // Collapse the list only when an answer starts, so that files that are added during an answer are shown.
  const wasAnswering = useRef(isAnswering);
  useEffect(() => {
    if (isAnswering && !wasAnswering.current) setCollapsedAt(taskCount.current);
    wasAnswering.current = isAnswering;
  }, [isAnswering]);
  const canClose = isAnswering && !userChoice && tasks.every(isAdded);
  useEffect(() => {
    if (canClose) void api.clearFinishedUploads();
  }, [api, canClose]);
  // While the list contains the focus, keep it open, because collapsing would remove the focused element.
  const [hasFocus, setHasFocus] = useState(false);
  const open = userChoice ?? (hasFocus || (collapsedAt !== tasks.length && !tasks.every(isAdded)));
  return (
    <Paper
      className={classes.tray}
      component="section"
      aria-label={t("uploads.title")}
      withBorder
      shadow="md"
      p="sm"
    >
      <Group justify="space-between" wrap="nowrap">
        <Text fw={600} size="sm" role="status">
          {uploadSummary(tasks)}
        </Text>
        <Group gap={4} wrap="nowrap">
          {tasks.some(isFinished) && (
            <Button variant="subtle" size="sm" onClick={() => void api.clearFinishedUploads()}>
              {t("uploads.clear")}
            </Button>
          )}
          <UnstyledButton
            className={classes.check}
            w={44}
            aria-label={open ? t("uploads.hide") : t("uploads.show")}
            aria-expanded={open}
            onClick={() => setUserChoice(!open)}
          >
            {open ? <IconChevronDown size={18} /> : <IconChevronUp size={18} />}
          </UnstyledButton>
        </Group>
      </Group>
      {open && (
        <Box
          className={classes.tasks}
          onFocus={() => setHasFocus(true)}
          onBlur={(event) => setHasFocus(keepsFocus(event))}
        >
          <TaskList tasks={tasks.filter(isComing)}>
            <BulkAction
              tasks={tasks.filter(({ stage }) => stage === "waiting")}
              label={(n) => t("uploads.cancelWaiting", { n })}
              onClick={() => api.cancelWaitingUploads()}
            />
          </TaskList>
          <TaskList title={t("uploads.failedTitle")} tasks={tasks.filter(isFailed)}>
            <BulkAction
              tasks={tasks.filter(canTryAgain)}
              label={() => t("common.retryAll")}
              onClick={() => api.retryAllUploads()}
            />
          </TaskList>
          <TaskList tasks={tasks.filter((task) => !isComing(task) && !isFailed(task))} />
        </Box>
      )}
      <Text size="xs" c="dimmed" mt="xs">
        {t("uploads.textOnly")}
      </Text>
    </Paper>
  );
}

interface TaskListProps {
  title?: string;
  tasks: readonly Task[];
  /** Buttons for actions on all tasks. */
  children?: ReactNode;
}

function TaskList({ title, tasks, children }: TaskListProps) {
  if (tasks.length === 0) return null;
  return (
    <section aria-label={title}>
      <Group justify="space-between" gap="xs" mt="xs">
        {title && (
          <Text component="h2" size="sm" fw={600} m={0}>
            {title}
          </Text>
        )}
        {children}
      </Group>
      <ul>
        {inOrder(tasks).map((task) => (
          <UploadRow key={task.id} task={task} />
        ))}
      </ul>
    </section>
  );
}

interface BulkActionProps {
  tasks: readonly Task[];
  label(n: number): string;
  onClick(): unknown;
}

/** Show a button for an action on several tasks. Show no button for one task, which has its own in its row. */
function BulkAction({ tasks, label, onClick }: BulkActionProps) {
  if (tasks.length < 2) return null;
  return (
    <Button variant="default" size="sm" ms="auto" onClick={() => void onClick()}>
      {label(tasks.length)}
    </Button>
  );
}

/** Return whether the focus stays in the list after a blur event. Switching windows does not count as leaving it. */
function keepsFocus({ currentTarget, relatedTarget }: FocusEvent): boolean {
  return currentTarget.contains((relatedTarget as Node | null) ?? document.activeElement);
}

function isFailed({ stage }: Task): boolean {
  return stage === "failed";
}

function isAdded(task: Task): boolean {
  return task.stage === "done" && !task.existing;
}
