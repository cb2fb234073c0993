package app

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

	"github.com/fermata-go/fermata/app/config"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/postgres"
	"github.com/fermata-go/fermata/store/redis"
	"github.com/fermata-go/fermata/store/sqlite"
)

// storeFlags is where everything is kept, as a command line says it.
type storeFlags struct {
	Config  string `short:"c" help:"A file with settings; fermata config example prints one." placeholder:"FILE" env:"FERMATA_CONFIG"`
	Store   string `help:"Where everything is kept, sqlite:FILE or postgres://…, in the place of store.url." placeholder:"URL"`
	KeyFile string `help:"The file with the key, in the place of key.file." placeholder:"FILE"`
}

// settings are those of the file, of the environment and of the command line.
func (p storeFlags) settings(flags ...string) (*config.Config, error) {
	said := map[string]string{"store.url": p.Store, "key.file": p.KeyFile}
	for i := 0; i+1 < len(flags); i += 2 {
		said[flags[i]] = flags[i+1]
	}
	return config.Load(config.Source{File: p.Config, Environ: os.Environ(), Flags: said})
}

// storeSettings is a store that is named by settings.
type storeSettings struct {
	*config.Config
	log *slog.Logger // nil: nobody reads it
}

func (p storeFlags) storeSettings() (storeSettings, error) {
	c, err := p.settings()
	return storeSettings{Config: c}, err
}

// closableStore is a store that has to be closed.
type closableStore interface {
	store.Store
	io.Closer
}

// sqlite returns the path of the file, if it is one.
func (k storeSettings) sqlite() (path string, ok bool) {
	return strings.CutPrefix(k.Store.URL.Reveal(), config.SQLiteScheme)
}

func (k storeSettings) postgres() postgres.Config {
	s := k.Store
	return postgres.Config{Schema: s.Schema, MaxConns: s.MaxConns, Timeout: s.Timeout, LockTimeout: s.LockTimeout}
}

// open opens the store. A SQLite file must be there if mustExist says so: a mistyped name must not look like an empty store.
func (k storeSettings) open(ctx context.Context, mustExist bool) (closableStore, error) {
	if err := config.CheckStore(k.Store.URL); err != nil {
		return nil, err
	}
	if path, ok := k.sqlite(); ok {
		if mustExist && k.isNew() {
			return nil, k.missingError()
		}
		return k.withRedis(sqlite.Open(path))
	}
	return k.withRedis(postgres.Open(ctx, k.Store.URL.Reveal(), k.postgres()))
}

// cachedStore is a store behind Redis.
type cachedStore struct {
	*redis.Store
	close func() error
}

func (c *cachedStore) Close() error { return c.close() }

// behindRedis puts Redis in front of a store, if there is one.
func (k storeSettings) withRedis(s closableStore, err error) (closableStore, error) {
	if err != nil {
		return nil, newerError(err)
	}
	if k.Store.RedisURL == "" {
		return s, nil
	}
	client, err := redis.NewClient(k.Store.RedisURL.Reveal())
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	front, err := redis.New(s, client, redis.Config{OnStateChange: k.logRedis})
	if err != nil {
		return nil, errors.Join(err, client.Close(), s.Close())
	}
	return &cachedStore{front, func() error { return errors.Join(client.Close(), s.Close()) }}, nil
}

// tellOfRedis says that Redis went, or came back. Nothing but speed depends on it, so nobody would notice.
func (k storeSettings) logRedis(err error) {
	switch {
	case k.log == nil:
	case err != nil:
		k.log.Warn("Redis is left alone for now; checkpoints come from the database", "err", err)
	default:
		k.log.Info("Redis is back")
	}
}

// version says how far the schema is, without touching it.
func (k storeSettings) version(ctx context.Context) (applied int, known []string, err error) {
	if path, ok := k.sqlite(); ok {
		applied, known, err = sqlite.Version(ctx, path)
	} else {
		applied, known, err = postgres.Version(ctx, k.Store.URL.Reveal(), k.postgres())
	}
	return applied, known, newerError(err)
}

// newerError says what to do about a store that is newer than this program.
func newerError(err error) error {
	if errors.Is(err, sqlite.ErrNewer) || errors.Is(err, postgres.ErrNewer) {
		return fmt.Errorf("the store belongs to a newer fermata than this one (%s): run that one, or go back to a backup from before it (%w)", version(), err)
	}
	return err
}

// keyFile is the file with the key.
func (k storeSettings) keyFile() (string, error) {
	if k.Key.File != "" {
		return k.Key.File, nil
	}
	if path, ok := k.sqlite(); ok {
		return path + ".key", nil
	}
	return "", usage("--key-file (or key.file) is missing: replicas on PostgreSQL share a key; fermata key make makes one")
}

// openBox opens the key file. It is made on the first start only, together with the store: a key that is lost cannot be made anew.
func (k storeSettings) openKeyRing(first bool) (*seal.KeyFile, string, error) {
	path, err := k.keyFile()
	if err != nil {
		return nil, "", err
	}
	if first {
		if err := makeKey(path); err != nil {
			return nil, "", err
		}
	}
	file, err := seal.OpenKeyFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = &fileError{fmt.Errorf("the key file %s is missing, and without it nothing in the store can be opened: put it back. For a new store: fermata key make %s", filepath.Base(path), path)}
	case err != nil:
		err = &fileError{err}
	}
	return file, path, err
}

// makeKey makes a key file, if it is not there.
func makeKey(path string) error {
	folder := filepath.Dir(path)
	if isMissing(folder) {
		return fmt.Errorf("%w %s: make it first", errNoFolder, folder)
	}
	return seal.CreateKeyFile(path)
}

// isNew reports whether there is no store yet.
func (k storeSettings) isNew() bool {
	path, ok := k.sqlite()
	if !ok {
		return false
	}
	return isMissing(path)
}

// missing says that there is no store, and what to do about it.
func (k storeSettings) missingError() error {
	path, ok := k.sqlite()
	if !ok {
		path = "in the schema " + k.Store.Schema + " of that database"
	}
	return fmt.Errorf("%w %s: --store or --config names another one, fermata migrate makes this one", errNoStore, path)
}

// current refuses a store that is not there, or whose schema would have to be changed first: only migrate and the start of a server may do that. Servers of
// before may be at work on it, and whoever only looks has to leave it as it is.
func (k storeSettings) checkSchema(ctx context.Context) error {
	applied, known, err := k.version(ctx)
	switch {
	case err != nil:
		return err
	case applied == 0:
		return k.missingError()
	case applied < len(known):
		return fmt.Errorf("the schema of the store is at %d, and this program needs %d: run fermata migrate, or the program of the server", applied, len(known))
	}
	return nil
}

// providers are those that this program has.
func (p *program) providers(c *config.Config) ([]provider.Provider, error) {
	own, err := inproc.New(p.graphs...)
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
	return append([]provider.Provider{own, elsewhere}, p.others...), nil
}

// webhookSecrets says what the webhooks of an account are signed with: its own secrets, or else those that are nobody's.
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

// openExecutor is a store with the executor that knows its key.
type openExecutor struct {
	*executor.Executor
	file  string // with the key
	close func() error
}

// open opens what is there already, for somebody who looks after it; nothing is executed.
func (p storeFlags) open(ctx context.Context, of *program) (*openExecutor, error) {
	k, err := p.storeSettings()
	if err != nil {
		return nil, err
	}
	if _, err := k.keyFile(); err != nil {
		return nil, err
	}
	if err := k.checkSchema(ctx); err != nil { // before somebody looks for its key
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
	providers, err := of.providers(k.Config)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	e, err := executor.New(executor.Config{Store: s, Sealer: file, Providers: providers, Log: slog.New(slog.NewTextHandler(of.err, nil))})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &openExecutor{Executor: e, file: path, close: func() error {
		return errors.Join(e.Stop(context.WithoutCancel(ctx)), s.Close())
	}}, nil
}

// withStore opens a store that is there, lets somebody use it, and closes it.
func (p storeFlags) withStore(ctx context.Context, use func(store.Store) error) error {
	k, err := p.storeSettings()
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

// withExecutor opens a store that is there, lets somebody look after it, and closes it.
func (p storeFlags) withExecutor(ctx context.Context, of *program, use func(*openExecutor) error) error {
	o, err := p.open(ctx, of)
	if err != nil {
		return err
	}
	return errors.Join(use(o), o.close())
}
