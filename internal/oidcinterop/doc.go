// Package oidcinterop tests the sign-in with a third-party identity provider. Its tests start
// node-oidc-provider, which is certified by the OpenID Foundation, and fermata serve with a
// settings file, and go from one to the other like a browser.
//
//	browser ── /signin ──────────▶ fermata serve (a process, with its settings in YAML)
//	   │  ◀── 303 ──────────────────┘      │ discovery, code for tokens, keys, userinfo
//	   └──── /auth, login, consent ──▶ proxy ──▶ provider/provider.mjs (a process)
//
// The proxy has the address of the provider. It stays when the provider ends and another one
// starts, and counts requests. Misbehaving providers are tested with internal/oidctest.
package oidcinterop
