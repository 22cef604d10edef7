/** The parser of pdf.js. It is imported for its side effects. */
declare module "pdfjs-dist/legacy/build/pdf.worker.mjs";
