// `validatorUrl: null`: by default the page would send the schema's address to a validator elsewhere.
SwaggerUIBundle({
  dom_id: "#api",
  url: "/schema/openapi.json",
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "none", // a table of contents first: to draw all operations takes seconds
  defaultModelsExpandDepth: 0,
});
