/** The half of pdf.js that reads: loaded for what it does, it exports nothing that is called here. */
declare module "pdfjs-dist/legacy/build/pdf.worker.mjs";
