import { DocumentList } from "./DocumentList.tsx";
import { DocumentPage } from "./DocumentPage.tsx";

/** Show the pages `/documents` and `/documents/:id`. */
export default function Documents({ params: { id } }: { params: { id?: string } }) {
  return id ? <DocumentPage key={id} id={id} /> : <DocumentList />;
}
