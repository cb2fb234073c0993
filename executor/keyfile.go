package executor

import "github.com/fermata-go/fermata/internal/seal"

// OpenKeyFile opens a key file: AES-256-GCM with the first key in it, and with all of them to open. A change of the file is noticed while
// processes run. Nobody but its owner may be able to read it.
func OpenKeyFile(path string) (Sealer, error) {
	file, err := seal.OpenKeyFile(path)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// CreateKeyFile makes a key file with a new key, if there is none; fermata key make does the same. All processes on one store need the same file. Keep a copy
// of it, and not where the backups of the store are: without it nothing in the store can be opened.
func CreateKeyFile(path string) error { return seal.CreateKeyFile(path) }
