package serve

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
)

// TryStart performs the startup checks of a server before it opens its store, and reports all
// errors: a valid value may name a missing file.
func (p *Program) TryStart(ctx context.Context, c *config.Config) error {
	noKey := StoreSettings{Config: c}.tryKey()
	_, noProviders := p.OpenProviders(c)
	channels, noChannels := p.OpenChannels(c, slog.New(slog.DiscardHandler))
	var noDesk error
	if noChannels == nil { // otherwise targets are not served because of these errors
		_, _, noDesk = openPolicyFiles(ctx, c, ServedBy(channels))
	}
	_, noCertificate := certificate(c.Listen.TLS, slog.New(slog.DiscardHandler))
	var wrong []config.Mistake
	for _, err := range []error{noKey, noProviders, noChannels, noDesk, noCertificate, tryOIDC(c.Auth.OIDC), trySigning(c.Audit.Sign.Key), tryFolder(c.Audit.Sign.Dir), tryClaude(ctx, c.Providers.Claude)} {
		list := []error{err}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			list = joined.Unwrap()
		}
		for _, err := range list {
			if err != nil {
				// the text begins with the key
				wrong = append(wrong, config.Mistake{Message: err.Error()})
			}
		}
	}
	if wrong == nil {
		return nil
	}
	return &config.InvalidError{Mistakes: wrong}
}

// tryKey opens the key file, if it exists or must exist.
func (k StoreSettings) tryKey() error {
	path, err := k.keyFile()
	if err != nil || k.isNew() && cli.IsMissing(path) {
		return err
	}
	if _, _, err := k.openKeyRing(false); err != nil {
		return fmt.Errorf("key.file: %w", err)
	}
	return nil
}

func tryOIDC(c config.OIDC) error {
	provider := oidcConfig(c)
	if provider == nil {
		return nil
	}
	if err := provider.Check(); err != nil {
		return fmt.Errorf("auth.oidc: %s", strings.TrimPrefix(err.Error(), "server: "))
	}
	return nil
}

// trySigning opens the file with the signing key, or checks the directory in which it would be
// created.
func trySigning(path string) (err error) {
	if path == "" {
		return nil
	}
	if folder := filepath.Dir(path); !cli.IsMissing(path) {
		_, err = audit.OpenKey(path)
	} else if cli.IsMissing(folder) {
		err = fmt.Errorf("%w %s: create it first", cli.ErrNoFolder, folder)
	}
	if err != nil {
		return fmt.Errorf("audit.sign.key: %w", err)
	}
	return nil
}

// tryFolder checks the directory of checkpoints.
func tryFolder(dir string) error {
	if dir == "" {
		return nil
	}
	if _, err := audit.OpenCheckpointDir(dir); err != nil {
		return fmt.Errorf("audit.sign.dir: %w", err)
	}
	return nil
}
