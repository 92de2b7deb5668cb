import { flow, settings } from './flow.mjs';
import * as openid from 'openid-client';

const { id, secret, post, scope } = settings;
let config;

await flow({
  async discover() {
    const authenticate = post ? openid.ClientSecretPost(secret) : openid.ClientSecretBasic(secret);
    config = await openid.discovery(settings.issuer, id, undefined, authenticate, {
      algorithm: 'oauth2',
      timeout: 300, // seconds for each request, not 30: the machine may be busy
      execute: [openid.allowInsecureRequests], // the service under test speaks plain HTTP
    });
    return config.serverMetadata();
  },
  token: () => openid.clientCredentialsGrant(config, { scope, resource: settings.issuer.origin }),
  call: (token, url) => openid.fetchProtectedResource(config, token, url, 'GET'),
  introspect: (token) => openid.tokenIntrospection(config, token),
  revoke: (token) => openid.tokenRevocation(config, token),
});
