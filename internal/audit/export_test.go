package audit

import "golang.org/x/mod/sumdb/note"

// SignerOf lets tests sign invalid checkpoints.
func SignerOf(k *Key, origin string) (note.Signer, error) { return k.signer(origin) }

// NewStoreLogWithTiles returns a log with tiles of another height, so that a short log has many.
func NewStoreLogWithTiles(lines LineStore, height int) *StoreLog {
	s := NewStoreLog(lines)
	s.height = height
	return s
}
