package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
)

// MigrateSchema opens the store, which migrates it. A missing store is created with its key, as on
// the first start of a server.
func (k StoreSettings) MigrateSchema(ctx context.Context) error {
	if k.isNew() {
		if _, _, err := k.openKeyRing(true); err != nil {
			return err
		}
	}
	s, err := k.open(ctx, false)
	if err != nil {
		return err
	}
	return s.Close()
}

// StoreFlags are the flags that select a store.
type StoreFlags struct {
	Config  string `short:"c" help:"The configuration file; fermata config example prints one." placeholder:"FILE" env:"FERMATA_CONFIG"`
	Store   string `help:"The store, sqlite:FILE or postgres://…; overrides store.url." placeholder:"URL"`
	KeyFile string `help:"The key file; overrides key.file." placeholder:"FILE"`
}

// Settings loads the configuration from the file, the environment and the command line.
func (p StoreFlags) Settings(flags ...string) (*config.Config, error) {
	reply := map[string]string{"store.url": p.Store, "key.file": p.KeyFile}
	for i := 0; i+1 < len(flags); i += 2 {
		reply[flags[i]] = flags[i+1]
	}
	return config.Load(config.Source{File: p.Config, Environ: os.Environ(), Flags: reply})
}

// StoreSettings is the configuration of a store.
type StoreSettings struct {
	*config.Config
}

// StoreSettings loads the configuration of the store.
func (p StoreFlags) StoreSettings() (StoreSettings, error) {
	c, err := p.Settings()
	return StoreSettings{Config: c}, err
}

// closableStore is a store that must be closed.
type closableStore interface {
	store.Store
	io.Closer
}

// sqlite returns the path of the file, if the store is SQLite.
func (k StoreSettings) sqlite() (path string, ok bool) {
	return strings.CutPrefix(k.Store.URL.Reveal(), config.SQLiteScheme)
}

func (k StoreSettings) postgres() postgres.Config {
	s := k.Store
	return postgres.Config{Schema: s.Schema, MaxConns: s.MaxConns, Timeout: s.Timeout, LockTimeout: s.LockTimeout}
}

// open opens the store. With mustExist a SQLite file must exist: a mistyped name must not look like
// an empty store.
func (k StoreSettings) open(ctx context.Context, mustExist bool) (closableStore, error) {
	if err := config.CheckStore(k.Store.URL); err != nil {
		return nil, err
	}
	if path, ok := k.sqlite(); ok {
		if mustExist && k.isNew() {
			return nil, k.missingError()
		}
		if err := k.checkNotEmptied(ctx, path); err != nil {
			return nil, err
		}
		return opened(sqlite.Open(path))
	}
	return opened(postgres.Open(ctx, k.Store.URL.Reveal(), k.postgres()))
}

// emptyGrace is how long an empty file may be one that another process is creating.
const emptyGrace = time.Second

// checkNotEmptied rejects an empty file next to its key file: that is a store that was damaged, not
// a new one. A new store is created together with its key, or has no file yet.
func (k StoreSettings) checkNotEmptied(ctx context.Context, path string) error {
	key, err := k.keyFile()
	if err != nil || cli.IsMissing(key) {
		return err
	}
	for begin := time.Now(); ; {
		file, err := os.Stat(path)
		switch {
		case err != nil || file.Size() > 0: // errors other than that it is missing are those of opening it
			return nil
		case time.Since(begin) >= emptyGrace:
			return cli.InvalidFile(fmt.Errorf("the store %s is empty, but its key file %s exists: restore the store from a backup. For a new store, remove the empty file", path, filepath.Base(key)))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(emptyGrace / 20):
		}
	}
}

// opened returns the result of opening a store, with an explanation if it is newer than this
// program.
func opened(s closableStore, err error) (closableStore, error) {
	if err != nil {
		return nil, newerError(err)
	}
	return s, nil
}

// Version returns the schema version without changing it.
func (k StoreSettings) Version(ctx context.Context) (applied int, known []string, err error) {
	if path, ok := k.sqlite(); ok {
		applied, known, err = sqlite.Version(ctx, path)
	} else {
		applied, known, err = postgres.Version(ctx, k.Store.URL.Reveal(), k.postgres())
	}
	return applied, known, newerError(err)
}

// newerError explains a store that is newer than this program.
func newerError(err error) error {
	if errors.Is(err, sqlite.ErrNewer) || errors.Is(err, postgres.ErrNewer) {
		return fmt.Errorf("the store was migrated by a newer version of fermata (%s): use that version, or restore a backup from before (%w)", cli.Version(), err)
	}
	return err
}

// keyFile returns the path of the key file.
func (k StoreSettings) keyFile() (string, error) {
	if k.Key.File != "" {
		return k.Key.File, nil
	}
	if path, ok := k.sqlite(); ok {
		return path + ".key", nil
	}
	return "", cli.Usagef("--key-file (or key.file) is missing: replicas on PostgreSQL share a key; create one with fermata key make")
}

// openKeyRing opens the key file. It is created on the first start only, together with the store: a
// lost key cannot be recreated.
func (k StoreSettings) openKeyRing(first bool) (*seal.KeyFile, string, error) {
	path, err := k.keyFile()
	if err != nil {
		return nil, "", err
	}
	if first {
		if err := MakeKey(path); err != nil {
			return nil, "", err
		}
	}
	file, err := seal.OpenKeyFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = cli.InvalidFile(fmt.Errorf("the key file %s is missing, and without it the store cannot be decrypted: restore it. For a new store: fermata key make %s", filepath.Base(path), path))
	case err != nil:
		err = cli.InvalidFile(err)
	}
	return file, path, err
}

// MakeKey creates a key file, if it is missing.
func MakeKey(path string) error {
	folder := filepath.Dir(path)
	if cli.IsMissing(folder) {
		return fmt.Errorf("%w %s: create it first", cli.ErrNoFolder, folder)
	}
	return seal.CreateKeyFile(path)
}

// isNew reports whether the store does not exist yet.
func (k StoreSettings) isNew() bool {
	path, ok := k.sqlite()
	if !ok {
		return false
	}
	return cli.IsMissing(path)
}

// missingError explains that the store does not exist.
func (k StoreSettings) missingError() error {
	path, ok := k.sqlite()
	if !ok {
		path = "in the schema " + k.Store.Schema + " of that database"
	}
	return fmt.Errorf("%w %s: choose another one with --store or --config, or create it with fermata migrate", cli.ErrNoStore, path)
}

// checkSchema rejects a store that does not exist or that needs a migration: only migrate and a
// server start may do that. Older servers may use the store, and read-only commands must not change
// it.
func (k StoreSettings) checkSchema(ctx context.Context) error {
	applied, known, err := k.Version(ctx)
	switch {
	case err != nil:
		return err
	case applied == 0:
		return k.missingError()
	case applied < len(known):
		return fmt.Errorf("the schema of the store is at version %d, and this program needs %d: run fermata migrate, or use the version of the server", applied, len(known))
	}
	return nil
}

// OpenProviders returns the providers of this program.
func (p *Program) OpenProviders(c *config.Config) ([]provider.Provider, error) {
	graphs, err := p.graphsWithDialog(c)
	if err != nil {
		return nil, err
	}
	own, err := inproc.New(graphs...)
	if err != nil {
		return nil, err
	}
	secretsOf, err := webhookSecrets(c.Webhooks.Secrets)
	if err != nil {
		return nil, fmt.Errorf("webhooks.secrets: %w", err)
	}
	elsewhere, err := external.New(external.Config{Allow: c.Webhooks.Allow, Secrets: secretsOf})
	if err != nil {
		return nil, fmt.Errorf("webhooks.allow: %w", err)
	}
	all := []provider.Provider{own, elsewhere}
	peer, err := langGraph(c.Providers.LangGraph)
	if err != nil {
		return nil, err
	}
	if peer != nil {
		all = append(all, peer)
	}
	agents, err := claudeProvider(c.Providers.Claude)
	if err != nil {
		return nil, err
	}
	if agents != nil {
		all = append(all, agents)
	}
	return append(all, p.Providers...), nil
}

// webhookSecrets returns the signing secrets of an account's webhooks: its own, or else the shared
// ones.
func webhookSecrets(settings []config.Secret) (of func(ctx context.Context, account string) ([]string, error), err error) {
	var all []string
	by := make(map[string][]string)
	for _, s := range settings {
		account, secret := s.Webhook()
		by[account] = append(by[account], secret)
		all = append(all, secret)
	}
	return func(_ context.Context, account string) ([]string, error) {
		if own := by[account]; own != nil {
			return own, nil
		}
		return by[""], nil
	}, external.CheckSecrets(all)
}

// OpenExecutor is a store with an executor that has its key.
type OpenExecutor struct {
	*executor.Executor
	KeyFile string // the key file
	close   func() error
}

// open opens an existing store for maintenance; nothing is executed.
func (p StoreFlags) open(ctx context.Context, of *Program) (*OpenExecutor, error) {
	k, err := p.StoreSettings()
	if err != nil {
		return nil, err
	}
	if _, err := k.keyFile(); err != nil {
		return nil, err
	}
	if err := k.checkSchema(ctx); err != nil { // before the key file is required
		return nil, err
	}
	file, path, err := k.openKeyRing(false)
	if err != nil {
		return nil, err
	}
	s, err := k.open(ctx, true)
	if err != nil {
		return nil, err
	}
	providers, err := of.OpenProviders(k.Config)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	e, err := executor.New(executor.Config{Store: s, Sealer: file, Providers: providers, Log: slog.New(slog.NewTextHandler(of.Err, nil))})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &OpenExecutor{Executor: e, KeyFile: path, close: func() error {
		return errors.Join(e.Stop(context.WithoutCancel(ctx)), s.Close())
	}}, nil
}

// WithStore opens an existing store, calls use, and closes it.
func (p StoreFlags) WithStore(ctx context.Context, use func(store.Store) error) error {
	k, err := p.StoreSettings()
	if err != nil {
		return err
	}
	if err := k.checkSchema(ctx); err != nil {
		return err
	}
	s, err := k.open(ctx, true)
	if err != nil {
		return err
	}
	return errors.Join(use(s), s.Close())
}

// WithExecutor opens an existing store with an executor, calls use, and closes it.
func (p StoreFlags) WithExecutor(ctx context.Context, of *Program, use func(*OpenExecutor) error) error {
	o, err := p.open(ctx, of)
	if err != nil {
		return err
	}
	return errors.Join(use(o), o.close())
}
