package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/box"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/postgres"
	"github.com/fermata-go/fermata/store/sqlite"
)

// place is where everything is kept, as a command line says it.
type place struct {
	Store   string `help:"Where everything is kept: sqlite:FILE or postgres://…" placeholder:"URL" default:"sqlite:fermata.db" env:"FERMATA_STORE"`
	KeyFile string `help:"The file with the key; for SQLite, by default the file of the store with .key behind it." placeholder:"FILE" env:"FERMATA_KEY_FILE"`
}

const sqliteScheme = "sqlite:"

// openStore opens a store by its URL. A SQLite file must be there if mustExist says so: a mistyped name must not look like an empty store.
func (p place) openStore(ctx context.Context, mustExist bool) (openStore, error) {
	if path, ok := strings.CutPrefix(p.Store, sqliteScheme); ok {
		if mustExist && p.isNew() {
			return nil, fmt.Errorf("there is no store %s", path)
		}
		return sqlite.Open(path)
	}
	if u, err := url.Parse(p.Store); err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") {
		return postgres.Open(ctx, p.Store, postgres.Config{})
	}
	return nil, errors.New("the store is neither sqlite:FILE nor postgres://…") // without the text: it may hold a password
}

// openStore is a store that has to be closed.
type openStore interface {
	store.Store
	io.Closer
}

// keyFile is the file with the key.
func (p place) keyFile() (string, error) {
	if p.KeyFile != "" {
		return p.KeyFile, nil
	}
	if path, ok := strings.CutPrefix(p.Store, sqliteScheme); ok {
		return path + ".key", nil
	}
	return "", errors.New("--key-file is missing: replicas on PostgreSQL share a key")
}

// openBox opens the key file. It is made on the first start only, together with the store: a key that is lost cannot be made anew.
func (p place) openBox(first bool) (*box.File, string, error) {
	path, err := p.keyFile()
	if err != nil {
		return nil, "", err
	}
	if first {
		if err := box.MakeFile(path); err != nil {
			return nil, "", err
		}
	}
	file, err := box.OpenFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the key file %s is missing, and without it nothing in the store can be opened: put it back", filepath.Base(path))
	}
	return file, path, err
}

// isNew reports whether there is no store yet.
func (p place) isNew() bool {
	path, ok := strings.CutPrefix(p.Store, sqliteScheme)
	if !ok {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// opened is a store with the executor that knows its key.
type opened struct {
	*executor.Executor
	file  string // with the key
	close func() error
}

// open opens what is there already, for somebody who looks after it; nothing is executed.
func (p place) open(ctx context.Context, of *program) (*opened, error) {
	file, path, err := p.openBox(false)
	if err != nil {
		return nil, err
	}
	s, err := p.openStore(ctx, true)
	if err != nil {
		return nil, err
	}
	own, err := inproc.New(of.graphs...)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	e, err := executor.New(executor.Config{Store: s, Box: file, Providers: append([]provider.Provider{own}, of.others...), Log: slog.New(slog.NewTextHandler(of.err, nil))})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &opened{Executor: e, file: path, close: func() error {
		return errors.Join(e.Stop(context.WithoutCancel(ctx)), s.Close())
	}}, nil
}
