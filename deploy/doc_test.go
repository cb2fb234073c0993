// Package deploy tests the deployment files against the program: the image, the manifests, the
// unit, and the commands in docs/operations.md, docs/external-agents.md and the runbooks.
package deploy
