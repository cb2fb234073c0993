// Package typescript tests the TypeScript client against the server: the types generated from the
// OpenAPI document, the package that npm would publish, and a scenario that runs in Node against
// the real program.
//
//	go test ./clients/typescript -run Generated -update   regenerates the types
package typescript
