package endpoint

import (
	"encoding/json"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/ident"
)

// digestNames are the actions whose name in the digest of an idempotency key differs from the path:
// digests are stored, so they keep the first names of these actions.
var digestNames = map[string]string{"clarify": "question"}

// IdempotencyKey makes a command apply once per key. The digest is stored, so the JSON names of
// the body must not change.
func IdempotencyKey(key, act string, body any) desk.IdempotencyKey {
	if name, ok := digestNames[act]; ok {
		act = name
	}
	text, _ := json.Marshal(body) // was decoded from JSON
	return desk.IdempotencyKey{Key: key, Digest: ident.Derive("act", act, string(text))}
}
