package executor

import (
	"context"

	"github.com/fermata-go/fermata/store/encrypted"
)

// Sealer encrypts values. A value can be decrypted only under the label that it was encrypted with.
type Sealer = encrypted.Sealer

// ReencryptProgress counts the values that a re-encryption has seen and changed.
type ReencryptProgress = encrypted.ReencryptProgress

// OpenKeyFile opens a key file: see [encrypted.OpenKeyFile].
func OpenKeyFile(path string) (Sealer, error) { return encrypted.OpenKeyFile(path) }

// CreateKeyFile creates a key file with a new key, unless the file exists: see [encrypted.CreateKeyFile].
func CreateKeyFile(path string) error { return encrypted.CreateKeyFile(path) }

// Reencrypt encrypts everything in the store with the current key: see [encrypted.Store.ReencryptAll].
func (e *Executor) Reencrypt(ctx context.Context, progress func(ReencryptProgress)) (ReencryptProgress, error) {
	return e.store.ReencryptAll(ctx, progress)
}

// keyLoop watches whether the keys can be reloaded.
func (e *Executor) keyLoop() {
	for !e.background.IsStopping() {
		e.checkKeyReload()
		e.background.Sleep(e.config.Poll)
	}
}

// checkKeyReload logs when the keys can no longer be reloaded, and when they can again. Until then they must not be changed, and no process may be restarted.
func (e *Executor) checkKeyReload() {
	err := e.store.KeyErr()
	before := e.keyReloadFailing.Swap(err != nil)
	switch {
	case err != nil && !before:
		e.config.Log.Error("the key file cannot be read again; the keys that are known stay in use, and another start would fail", "err", err)
	case err == nil && before:
		e.config.Log.Info("the key file can be read again")
	}
}
