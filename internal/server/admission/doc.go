// Package admission decides which requests a server accepts: rate limits per principal, slots and
// fair scheduling per account, limits for full-history reads, and a bound on idle connections. It
// knows nothing about the API.
package admission
