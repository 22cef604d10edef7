import { ProjectList } from "./ProjectList.tsx";
import { ProjectPage } from "./ProjectPage.tsx";

interface Props {
  params: { id?: string; part?: string };
}

/** Show the pages below `/projects`. */
export default function Projects({ params: { id, part } }: Props) {
  return id ? <ProjectPage key={id} id={id} part={part} /> : <ProjectList />;
}
