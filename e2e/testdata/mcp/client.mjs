// Takes an MCP client that others wrote through what an agent does with it, and prints what it saw as one line of JSON.
//   CLIENT  package to take: @modelcontextprotocol/sdk or @modelcontextprotocol/client
//   URL     of the server; KEY, or CLIENT_ID and CLIENT_SECRET at ISSUER, as who; none: as nobody
//   ORG, UPLOAD  what to ask for
const { CLIENT, URL: url, KEY, CLIENT_ID, CLIENT_SECRET, ISSUER, ORG, UPLOAD } = process.env;

async function library() {
  if (CLIENT === '@modelcontextprotocol/client') return import(CLIENT);
  const [client, transport, auth] = await Promise.all([
    import(`${CLIENT}/client/index.js`), import(`${CLIENT}/client/streamableHttp.js`), import(`${CLIENT}/client/auth-extensions.js`),
  ]);
  return { ...client, ...transport, ...auth };
}

const { Client, StreamableHTTPClientTransport, ClientCredentialsProvider } = await library();

// What goes over the wire, to see who was asked for a token, and for which resource.
const asked = [];
const watching = async (input, init) => {
  const response = await fetch(input, init);
  const body = init?.body instanceof URLSearchParams ? Object.fromEntries(init.body) : undefined;
  if (body) delete body.client_secret;
  asked.push({ path: new URL(input.url ?? input).pathname, status: response.status, form: body });
  return response;
};

const options = { fetch: watching };
if (KEY) options.requestInit = { headers: { 'x-api-key': KEY } };
if (CLIENT_ID) options.authProvider = new ClientCredentialsProvider({ clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, expectedIssuer: ISSUER });

const client = new Client({ name: 'agent', version: '1.0.0' });
const seen = { asked, calls: {} };
await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
seen.server = client.getServerVersion()?.name;
seen.instructions = client.getInstructions();
seen.tools = (await client.listTools()).tools.map((t) => t.name);
seen.resources = (await client.listResources()).resources.map((r) => r.uri);
seen.read = (await client.readResource({ uri: 'accession://docs/quick-start' })).contents[0].text;
for (const [name, args] of Object.entries({
  get_capabilities: {},
  get_ai_context: { org_id: ORG, upload_id: UPLOAD },
  get_upload_status: { org_id: ORG, upload_id: UPLOAD },
  list_request_records: { org_id: ORG },
})) {
  try {
    seen.calls[name] = await client.callTool({ name, arguments: args }); // it checks structuredContent against outputSchema itself
  } catch (e) {
    seen.calls[name] = { refused: e.name, code: e.code, message: e.message };
  }
}
await client.close();
process.stdout.write(`${JSON.stringify(seen)}\n`);
