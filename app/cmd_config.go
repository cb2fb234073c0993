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

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/config"
)

type configCommands struct {
	Example configExample `cmd:"" help:"Print an example file with every key, its default and its description."`
	Check   configCheck   `cmd:"" help:"Check a file and the environment."`
}

type configExample struct{}

// Run prints the example; with --json, the keys.
func (configExample) Run(p *program) error {
	return p.print(config.Describe(), func(w io.Writer) { _, _ = w.Write(config.Example()) })
}

type configCheck struct {
	File string `arg:"" help:"The file."`
}

// configReport is the JSON output of a check. Mistakes are returned as an error.
type configReport struct {
	File     string   `json:"file"`
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`
}

// Run checks a file together with the environment, as a server would load it.
func (c *configCheck) Run(ctx context.Context, p *program) error {
	settings, err := config.Load(config.Source{File: c.File, Environ: os.Environ()})
	if err != nil {
		return err
	}
	if err := p.tryStart(ctx, settings); err != nil {
		return err
	}
	report := configReport{File: c.File, Valid: true, Warnings: settings.Warnings}
	if report.Warnings == nil {
		report.Warnings = []string{}
	}
	return p.print(report, func(w io.Writer) {
		for _, warning := range settings.Warnings {
			fmt.Fprintln(w, "warning:", warning)
		}
		fmt.Fprintf(w, "%s is valid\n", c.File)
	})
}

// tryStart performs the startup checks of a server before it opens its store, and reports all
// errors: a valid value may name a missing file.
func (p *program) tryStart(ctx context.Context, c *config.Config) error {
	noKey := storeSettings{Config: c}.tryKey()
	_, noProviders := p.providers(c)
	channels, noChannels := p.openChannels(c, slog.New(slog.DiscardHandler))
	var noDesk error
	if noChannels == nil { // otherwise targets are not served because of these errors
		_, _, noDesk = openPolicyFiles(ctx, c, servedBy(channels))
	}
	_, noCertificate := certificate(c.Listen.TLS, slog.New(slog.DiscardHandler))
	var wrong []config.Mistake
	for _, err := range []error{noKey, noProviders, noChannels, noDesk, noCertificate, tryOIDC(c.Auth.OIDC), trySigning(c.Audit.Sign.Key), tryFolder(c.Audit.Sign.Dir), tryClaude(ctx, c.Providers.Claude)} {
		if err != nil {
			// the text begins with the key
			wrong = append(wrong, config.Mistake{Message: err.Error()})
		}
	}
	if wrong == nil {
		return nil
	}
	return &config.InvalidError{Mistakes: wrong}
}

// tryKey opens the key file, if it exists or must exist.
func (k storeSettings) tryKey() error {
	path, err := k.keyFile()
	if err != nil || k.isNew() && isMissing(path) {
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
	if folder := filepath.Dir(path); !isMissing(path) {
		_, err = audit.OpenKey(path)
	} else if isMissing(folder) {
		err = fmt.Errorf("%w %s: create it first", errNoFolder, folder)
	}
	if err != nil {
		return fmt.Errorf("audit.sign.key: %w", err)
	}
	return nil
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
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
