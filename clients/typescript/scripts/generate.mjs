// Writes the types of the wire (src/openapi.ts) from the document that a service serves:
//
//   npm run generate -- http://127.0.0.1:8080/api/v1/ai/openapi.json [file to write]
//
// Operations of administrators and operators are no part of this client. Neither are headers and refusals, which every operation
// has alike: AccessionError stands for them.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const [source, target = new URL("../src/openapi.ts", import.meta.url)] = process.argv.slice(2);
if (!source) {
  console.error("usage: npm run generate -- ADDRESS-OR-FILE-OF-openapi.json [TARGET]");
  process.exit(2);
}
const served = /^https?:/.test(source) ? await fetch(source).then((answer) => answer.json()) : JSON.parse(await readFile(source, "utf8"));

const ours = /^\/(api\/v1\/organizations\/|api\/v1\/ai\/(capabilities|access-policy)|oauth\/(token|identity|jwks))/;
const plain = (content) => Object.fromEntries(Object.entries(content ?? {}).map(([media, { schema }]) => [media, { schema }])); // without examples
const paths = {};
for (const [path, item] of Object.entries(served.paths)) {
  if (!ours.test(path)) continue;
  paths[path] = {};
  for (const [method, operation] of Object.entries(item)) {
    const responses = Object.entries(operation.responses ?? {}).filter(([status]) => status.startsWith("2"));
    paths[path][method] = {
      ...operation,
      parameters: operation.parameters?.filter((parameter) => parameter.in !== "header"),
      ...(operation.requestBody && { requestBody: { ...operation.requestBody, content: plain(operation.requestBody.content) } }),
      responses: Object.fromEntries(responses.map(([status, { description, content }]) => [status, { description, content: plain(content) }])),
    };
  }
}

// What these operations and the events of webhooks are made of, and what that is made of in turn.
const schemas = {};
const queue = [paths, { $ref: "#/components/schemas/Problem" }, { $ref: "#/components/schemas/StatusChange" }, { $ref: "#/components/schemas/ContextRecalled" }];
while (queue.length > 0) {
  JSON.stringify(queue.pop(), (key, value) => {
    const name = key === "$ref" && value.startsWith("#/components/schemas/") ? value.slice(21) : "";
    if (name && !(name in schemas)) {
      schemas[name] = served.components.schemas[name];
      queue.push(schemas[name]);
    }
    return value;
  });
}
// Every object may grow fields; to say so in each type would take every misspelt field as known.
const closed = (key, value) => (key === "additionalProperties" && value === true ? undefined : value);
const document = { openapi: served.openapi, info: served.info, paths, components: { schemas: Object.fromEntries(Object.entries(schemas).sort()) } };
const ast = await openapiTS(JSON.parse(JSON.stringify(document, closed)), { alphabetize: true });
await writeFile(target, "// Generated from the served document: npm run generate. Do not edit.\n\n" + astToString(ast));
