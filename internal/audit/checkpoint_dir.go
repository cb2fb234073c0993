package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/atomicfile"
)

// CheckpointDir keeps checkpoints as files outside of the store. Use a directory that people with
// access to the store cannot write to.
//
//	DIR/account-acme/00000000000000001000.note
//	DIR/account-acme/key.pub
//
// Files are only added. Copy them to keep more copies elsewhere, for example in a git repository.
type CheckpointDir struct{ dir string }

// OpenCheckpointDir opens an existing directory. It does not create one: if a volume is not mounted
// or the name is wrong, earlier checkpoints would be ignored without notice.
func OpenCheckpointDir(dir string) (*CheckpointDir, error) {
	f := &CheckpointDir{dir}
	return f, f.checkExists()
}

// checkExists returns nil if the directory exists.
func (f *CheckpointDir) checkExists() error {
	info, err := os.Stat(f.dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory", f.dir)
	}
	return err
}

// CreateCheckpointDir opens a directory and creates it if it does not exist.
func CreateCheckpointDir(dir string) (*CheckpointDir, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return OpenCheckpointDir(dir)
}

const (
	noteSuffix    = ".note"
	publicKeyFile = "key.pub"
)

// accountDir returns the directory of an account.
func (f *CheckpointDir) accountDir(account string) string {
	name := url.PathEscape(account)
	if len(name) > 200 {
		sum := sha256.Sum256([]byte(account))
		name = "." + hex.EncodeToString(sum[:])
	}
	return filepath.Join(f.dir, "account-"+name)
}

// Add adds a checkpoint and the public key of the log. If there is one of the same size, nothing
// changes.
func (f *CheckpointDir) Add(account string, c Checkpoint, public string) error {
	dir := f.accountDir(account)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := addLine(filepath.Join(dir, publicKeyFile), public); err != nil {
		return err
	}
	if err := atomicfile.Create(filepath.Join(dir, sizeID(c.Size)+noteSuffix), 0o644, writeBytes(c.Note)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func writeBytes(text []byte) func(*os.File) error {
	return func(file *os.File) error {
		_, err := file.Write(text)
		return err
	}
}

// Notes returns the checkpoints of an account, by increasing size, or none.
func (f *CheckpointDir) Notes(account string) ([][]byte, error) {
	names, err := f.names(account)
	var notes [][]byte
	for _, name := range names {
		note, err := os.ReadFile(filepath.Join(f.accountDir(account), name))
		if err != nil {
			return nil, err
		}
		notes = append(notes, note)
	}
	return notes, err
}

// Last returns the largest checkpoint of an account, or nil if there is none.
func (f *CheckpointDir) Last(account string) ([]byte, error) {
	names, err := f.names(account)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return os.ReadFile(filepath.Join(f.accountDir(account), names[len(names)-1]))
}

func (f *CheckpointDir) names(account string) (names []string, err error) {
	files, err := os.ReadDir(f.accountDir(account)) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, f.checkExists()
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), noteSuffix) {
			names = append(names, file.Name())
		}
	}
	return names, err
}

// PublicKeys returns the public keys of the log of an account, or none.
func (f *CheckpointDir) PublicKeys(account string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(f.accountDir(account), publicKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, f.checkExists()
	}
	return strings.Fields(string(text)), err
}

// addLine adds a line to a file unless the file has it. After a key rotation there are two.
func addLine(path, line string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.Contains(strings.Split(string(text), "\n"), line) {
		return nil
	}
	return atomicfile.Replace(path, 0o644, writeBytes(append(text, line+"\n"...)))
}
