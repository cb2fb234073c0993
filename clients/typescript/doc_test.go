// Package typescript holds the TypeScript client against the server: the types that are made from the server's OpenAPI document, the package
// that npm would publish, and a story told from Node against the program itself.
//
//	go test ./clients/typescript -run Generated -update   makes the types anew
package typescript
