// Package deploy holds what operators get against the program: the image, the manifests, the unit, and what docs/operations.md and
// docs/runbook-stuck-approval.md tell them to type.
package deploy
