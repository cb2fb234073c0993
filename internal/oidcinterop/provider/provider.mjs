// A certified OpenID provider on loopback, for tests: node provider.mjs '{"issuer": "http://127.0.0.1:1234", …}'
//
// It listens on a free port, says so in one line of JSON, and ends when its standard input does. What it keeps, keys and sessions too, is gone then.
// The people below may sign in, with any password, on the pages that come with the provider.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';

console.info = console.log = console.error; // standard output has one line

const { Provider } = await import('oidc-provider');

// order is what the test wants: where browsers find us, where they go back to, the signature of tokens (RS256 or ES256), and whether what is told of people
// is in the ID token (some providers) or at the userinfo endpoint only (the standard's way, and this provider's default).
const order = JSON.parse(process.argv[2]);

const people = {
  ann: { name: 'Ann Archer', email: 'ann@example.org', email_verified: true, groups: ['everybody', 'reviewers'] },
  bob: { name: 'Bob Baker', email: 'bob@example.org', email_verified: false, groups: ['platform'] },
  eve: { name: 'Eve Else', email: 'eve@example.org', email_verified: true, groups: ['everybody'] },
  nil: { name: 'Nil Nobody', email: 'nil@example.org', email_verified: true },
};

function signingKey(alg) {
  const { privateKey } = alg === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg };
}

const web = { redirect_uris: [order.redirect], response_types: ['code'], id_token_signed_response_alg: order.alg };
const robot = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [], client_secret: order.secret, id_token_signed_response_alg: order.alg };

const provider = new Provider(order.issuer, {
  clients: [
    { ...web, client_id: 'fermata', client_secret: order.secret, grant_types: ['authorization_code'] },
    { ...web, client_id: 'fermata-public', token_endpoint_auth_method: 'none', grant_types: ['authorization_code'] },
    { ...robot, client_id: 'robot' },
    { ...robot, client_id: 'vagabond' },
  ],
  jwks: { keys: [signingKey(order.alg)] },
  cookies: { keys: [randomUUID()] },
  pkce: { required: () => true },
  claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'], groups: ['groups'] },
  conformIdTokenClaims: !order.claimsInIDToken,
  findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      getResourceServerInfo: (_, resource) => ({
        scope: '', audience: resource, accessTokenTTL: 300, accessTokenFormat: 'jwt', jwt: { sign: { alg: order.alg } },
      }),
    },
  },
  extraTokenClaims: (_, token) => ({ groups: token.accountId ? people[token.accountId].groups : token.clientId === 'robot' ? ['robots'] : undefined }),
});

// Errors of a client appear in the output of the test; a browser gets less.
for (const event of ['server_error', 'authorization.error', 'grant.error', 'userinfo.error', 'discovery.error', 'jwks.error']) {
  provider.on(event, (_, err) => console.error(`${event}: ${err.error ?? err}: ${err.error_detail ?? err.error_description ?? ''}`));
}

const { version } = JSON.parse(readFileSync(new URL('node_modules/oidc-provider/package.json', import.meta.url)));
const server = createServer(provider.callback());
server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ addr: `127.0.0.1:${server.address().port}`, version })}\n`));

process.stdin.on('end', () => process.exit(0)).resume();
