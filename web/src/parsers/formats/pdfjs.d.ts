/** The parser of pdf.js. Importing it makes pdf.js parse in this thread. */
declare module "pdfjs-dist/legacy/build/pdf.worker.mjs";
