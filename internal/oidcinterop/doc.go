// Package oidcpeer signs in to Fermata with an identity provider that others wrote: its tests start node-oidc-provider, which is certified by the OpenID
// Foundation, and fermata serve with a settings file, and walk from one to the other as a browser does.
//
//	browser ── /signin ──────────▶ fermata serve (a process, with its settings in YAML)
//	   │  ◀── 303 ──────────────────┘      │ discovery, code for tokens, keys, userinfo
//	   └──── /auth, login, consent ──▶ door ──▶ provider/provider.mjs (a process)
//
// The door is where the provider is found. It stays when the provider ends and another one starts behind it, and counts who comes.
// What only a bad provider does is tried with the stand-in (internal/oidctest).
package oidcinterop
