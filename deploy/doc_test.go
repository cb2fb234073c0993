// Package deploy holds what operators get against the program: the image, the manifests, the unit, and what docs/operations.md,
// docs/elsewhere.md and the runbooks tell them to type.
package deploy
