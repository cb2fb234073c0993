package executor

import (
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Sealer encrypts values. A value can be decrypted only under the label that it was encrypted with.
type Sealer = encrypted.Sealer

// OpenKeyFile opens a key file: see [encrypted.OpenKeyFile].
func OpenKeyFile(path string) (Sealer, error) { return encrypted.OpenKeyFile(path) }

// CreateKeyFile creates a key file with a new key, unless the file exists: see
// [encrypted.CreateKeyFile].
func CreateKeyFile(path string) error { return encrypted.CreateKeyFile(path) }

// keyLoop watches whether the keys can be reloaded.
func (e *Executor) keyLoop() {
	for !e.background.IsStopping() {
		e.checkKeyReload()
		e.background.Sleep(e.config.Poll)
	}
}

// checkKeyReload logs when the keys can no longer be reloaded, and when they can again. Until then
// they must not be changed, and no process may be restarted.
func (e *Executor) checkKeyReload() {
	err := e.store.KeyErr()
	before := e.keyReloadFailing.Swap(err != nil)
	switch {
	case err != nil && !before:
		e.config.Log.Error("key file cannot be reloaded; using the known keys", "err", err)
	case err == nil && before:
		e.config.Log.Info("key file reloaded")
	}
}
