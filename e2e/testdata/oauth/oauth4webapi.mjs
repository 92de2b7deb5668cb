import { flow, settings } from './flow.mjs';
import * as oauth from 'oauth4webapi';

const { id, secret, post, scope } = settings;
const client = { client_id: id };
const authenticate = post ? oauth.ClientSecretPost(secret) : oauth.ClientSecretBasic(secret);
const options = { [oauth.allowInsecureRequests]: true }; // the service under test speaks plain HTTP
let server;

await flow({
  // From the resource to its authorization server (RFC 9728), and on to that server's metadata (RFC 8414).
  async discover() {
    const said = await oauth.resourceDiscoveryRequest(settings.resource, options);
    const resource = await oauth.processResourceDiscoveryResponse(settings.resource, said);
    const issuer = new URL(resource.authorization_servers[0]);
    const found = await oauth.discoveryRequest(issuer, { ...options, algorithm: 'oauth2' });
    server = await oauth.processDiscoveryResponse(issuer, found);
    return server;
  },
  async token() {
    const wanted = new URLSearchParams({ scope });
    const said = await oauth.clientCredentialsGrantRequest(server, client, authenticate, wanted, options);
    return oauth.processClientCredentialsResponse(server, client, said);
  },
  call: (token, url) => oauth.protectedResourceRequest(token, 'GET', url, undefined, undefined, options),
  async introspect(token) {
    const said = await oauth.introspectionRequest(server, client, authenticate, token, options);
    return oauth.processIntrospectionResponse(server, client, said);
  },
  async revoke(token) {
    await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, authenticate, token, options));
  },
  // As a resource server would check the token: RFC 9068, with the published keys.
  claims: (token) =>
    oauth.validateJwtAccessToken(
      server,
      new Request(settings.resource, { headers: { authorization: `Bearer ${token}` } }),
      settings.issuer.origin,
      options,
    ),
});
