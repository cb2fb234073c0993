package operatorcmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/internal/atomicfile"
	"github.com/fermata-go/fermata/internal/cli"
)

type channelsWebPushKey struct {
	File string `arg:"" help:"The file to create; it must not exist."`
}

// Run creates a key file.
func (c *channelsWebPushKey) Run(p *cli.Program) error {
	key, err := MakeWebPushKey(c.File)
	if errors.Is(err, fs.ErrExist) {
		return cli.Usagef("the file %s already exists", c.File)
	}
	if err != nil {
		return err
	}
	row := struct {
		File      string `json:"file"`
		PublicKey string `json:"publicKey"`
	}{c.File, key.Public()}
	return p.Print(row, func(w io.Writer) {
		fmt.Fprintf(w, "%s created; set channels.webpush.keyFile to it. The public key is %s\n", c.File, key.Public())
	})
}

// MakeWebPushKey creates a file with a new key. It returns fs.ErrExist if the file exists.
func MakeWebPushKey(path string) (webpush.Key, error) {
	if folder := filepath.Dir(path); cli.IsMissing(folder) {
		return webpush.Key{}, fmt.Errorf("%w %s: create it first", cli.ErrNoFolder, folder)
	}
	key, err := webpush.NewKey()
	if err != nil {
		return key, err
	}
	return key, atomicfile.Create(path, 0o600, func(f *os.File) error {
		_, err := fmt.Fprintln(f, key.Private())
		return err
	})
}
