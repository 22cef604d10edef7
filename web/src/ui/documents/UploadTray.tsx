/**
 * Each file that was added, and how far it is. Once there is nothing to be told but that, or an answer comes,
 * it folds: answers stand below. When both are so it goes.
 */

import { Box, Button, Group, Paper, Text, UnstyledButton } from "@mantine/core";
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react";
import { useEffect, useRef, useState, type FocusEvent, type ReactNode } from "react";
import { canTryAgain, inOrder, isComing, isOver, type Task } from "../../core/documents/uploadTask.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import classes from "./documents.module.css";
import { UploadRow } from "./UploadRow.tsx";
import { t } from "../../locale/t.ts";
import { uploadSummary } from "./uploadText.ts";

export function UploadTray({ tasks, isAnswering }: { tasks: readonly Task[]; isAnswering: boolean }) {
  const { api } = useAccountApi();
  const [wanted, setWanted] = useState<boolean>();
  const [folded, setFolded] = useState(0); // so many were here when an answer came: another unfolds it
  const had = useRef(tasks.length);
  had.current = tasks.length;
  const wasAnswering = useRef(isAnswering); // what is added to an answer under way is not folded unseen
  useEffect(() => {
    if (isAnswering && !wasAnswering.current) setFolded(had.current);
    wasAnswering.current = isAnswering;
  }, [isAnswering]);
  // Nothing but that they were added, and the question is next: folded, too, it would lie over the answer.
  const isTold = isAnswering && !wanted && tasks.every(isPlain);
  useEffect(() => {
    if (isTold) void api.clearFinishedUploads();
  }, [api, isTold]);
  const [isIn, setIsIn] = useState(false); // folded under whoever is in it, it would take their focus away
  const open = wanted ?? (isIn || (folded !== tasks.length && !tasks.every(isPlain)));
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
          {tasks.some(isOver) && (
            <Button variant="subtle" size="sm" onClick={() => void api.clearFinishedUploads()}>
              {t("uploads.clear")}
            </Button>
          )}
          <UnstyledButton
            className={classes.check}
            w={44}
            aria-label={open ? t("uploads.hide") : t("uploads.show")}
            aria-expanded={open}
            onClick={() => setWanted(!open)}
          >
            {open ? <IconChevronDown size={18} /> : <IconChevronUp size={18} />}
          </UnstyledButton>
        </Group>
      </Group>
      {open && (
        <Box
          className={classes.tasks}
          onFocus={() => setIsIn(true)}
          onBlur={(event) => setIsIn(isStill(event))}
        >
          <Listed tasks={tasks.filter(isComing)}>
            <Many
              tasks={tasks.filter(({ stage }) => stage === "waiting")}
              label={(n) => t("uploads.cancelWaiting", { n })}
              onClick={() => api.cancelWaitingUploads()}
            />
          </Listed>
          <Listed title={t("uploads.failedTitle")} tasks={tasks.filter(isFailed)}>
            <Many
              tasks={tasks.filter(canTryAgain)}
              label={() => t("common.retryAll")}
              onClick={() => api.retryAllUploads()}
            />
          </Listed>
          <Listed tasks={tasks.filter((task) => !isComing(task) && !isFailed(task))} />
        </Box>
      )}
      <Text size="xs" c="dimmed" mt="xs">
        {t("uploads.textOnly")}
      </Text>
    </Paper>
  );
}

interface ListedProps {
  title?: string;
  tasks: readonly Task[];
  /** What can be done with many of them. */
  children?: ReactNode;
}

function Listed({ title, tasks, children }: ListedProps) {
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

interface ManyProps {
  tasks: readonly Task[];
  label(n: number): string;
  onClick(): unknown;
}

/** One alone has its own button. */
function Many({ tasks, label, onClick }: ManyProps) {
  if (tasks.length < 2) return null;
  return (
    <Button variant="default" size="sm" ms="auto" onClick={() => void onClick()}>
      {label(tasks.length)}
    </Button>
  );
}

/** Who goes to another window comes back to what had the focus. */
function isStill({ currentTarget, relatedTarget }: FocusEvent): boolean {
  return currentTarget.contains((relatedTarget as Node | null) ?? document.activeElement);
}

function isFailed({ stage }: Task): boolean {
  return stage === "failed";
}

function isPlain({ stage, existing }: Task): boolean {
  return stage === "done" && !existing;
}
