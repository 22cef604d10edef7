import { Box, Group, NativeSelect, Skeleton, Stack, Text, Title } from "@mantine/core";
import { memo, useMemo } from "react";
import { markPiece, pageNumbers, mergePieces, type Stretch } from "../../core/documents/documentPages.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { useChunks } from "../../client/backendClient.tsx";
import classes from "./documents.module.css";
import { HighlightedText } from "./HighlightedText.tsx";
import { t } from "../../locale/t.ts";

interface ReaderProps {
  document: Pick<DocumentDoc, "id" | "filename">;
  /** Index of the chunk to highlight. */
  passage: number | null;
}

/** Show the text of a document, page by page. */
export function Reader({ document: { id, filename }, passage }: ReaderProps) {
  const chunks = useChunks(id);
  const sections = useMemo(() => mergePieces(chunks ?? []), [chunks]);
  const pages = useMemo(() => pageNumbers(chunks ?? []), [chunks]);
  if (!chunks) return <Skeleton h="60dvh" aria-label={t("reader.loading")} role="status" />;
  if (chunks.length === 0) return <Text c="dimmed">{t("reader.textMissing")}</Text>;
  return (
    <Stack gap="md" component="section" aria-label={t("reader.text")}>
      {pages.length > 1 && <PageSelect pages={pages} />}
      {passage !== null && !chunks.some(({ index }) => index === passage) && (
        <Text c="dimmed">{t("reader.passageGone")}</Text>
      )}
      <Box maw="var(--reading-width)">
        {sections.map((section) => {
          const hasPassage = section.pieces.some(({ index }) => index === passage);
          return (
            <Section
              key={section.key}
              filename={filename}
              section={section}
              passage={hasPassage ? passage : null}
            />
          );
        })}
      </Box>
    </Stack>
  );
}

interface SectionProps {
  filename: string;
  section: Stretch;
  passage: number | null;
}

const Section = memo(function Section({ filename, section, passage }: SectionProps) {
  const { begins, pieces } = section;
  return (
    <Box className={classes.section} pb="md" {...(begins === undefined ? {} : { id: anchorOf(begins) })}>
      {begins !== undefined && (
        <Title order={3} size="sm" c="dimmed" py="sm">
          {t("reader.page", { n: begins })}
        </Title>
      )}
      <HighlightedText filename={filename} text={markPiece(pieces, passage)} />
    </Box>
  );
});

function PageSelect({ pages }: { pages: readonly number[] }) {
  return (
    <Group className={classes.toolbar} gap="xs" py="xs">
      <NativeSelect
        size="md"
        aria-label={t("reader.pageSelect")}
        data={pages.map((page) => ({ value: String(page), label: t("reader.page", { n: page }) }))}
        onChange={(event) => {
          document.getElementById(anchorOf(Number(event.currentTarget.value)))?.scrollIntoView();
        }}
      />
    </Group>
  );
}

const anchorOf = (page: number) => `page-${page}`;
