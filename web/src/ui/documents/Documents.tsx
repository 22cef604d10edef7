/** `/documents` is the list, `/documents/:id` one of them. */

import { DocumentList } from "./DocumentList.tsx";
import { DocumentPage } from "./DocumentPage.tsx";

export default function Documents({ params: { id } }: { params: { id?: string } }) {
  return id ? <DocumentPage key={id} id={id} /> : <DocumentList />;
}
