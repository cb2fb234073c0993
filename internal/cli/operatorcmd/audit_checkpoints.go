package operatorcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/cli"
)

type auditCheckpoints struct {
	cli.Remote
	Dir string `help:"Write all checkpoints to this directory, in the form that audit verify --kept takes; existing ones are kept unchanged." placeholder:"DIR"`
}

// Run fetches the signed checkpoints of the server, for an auditor who keeps them out of reach of
// its operators.
func (c *auditCheckpoints) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	me, err := to.Me(ctx)
	if err != nil {
		return err
	}
	keep := func(audit.Checkpoint, string) error { return nil }
	if c.Dir != "" {
		folder, err := audit.CreateCheckpointDir(c.Dir)
		if err != nil {
			return err
		}
		keep = func(signed audit.Checkpoint, public string) error { return folder.Add(me.Account, signed, public) }
	}
	count, last := 0, CheckpointReport{}
	for after := int64(0); ; {
		page, err := to.Checkpoints(ctx, after)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			count, last = count+1, CheckpointReport{item.Size, item.Note, page.PublicKey}
			if err := keep(audit.Checkpoint{Size: item.Size, Note: []byte(item.Note)}, page.PublicKey); err != nil {
				return err
			}
		}
		if after = page.Next; after == 0 {
			break
		}
	}
	if count == 0 {
		return fmt.Errorf("%w: audit.sign.key is not set, or nothing was signed yet", audit.ErrNotSigned)
	}
	return p.Print(last, func(w io.Writer) {
		fmt.Fprintf(p.Err, "%d checkpoints; public key: %s\n", count, cmp.Or(last.Public, "unknown to the server, because audit.sign.key is not set; fermata audit sign printed it"))
		if c.Dir == "" {
			fmt.Fprint(w, last.Note)
		}
	})
}

// readCheckpoints reads kept checkpoints: from a file with one, or from a directory, which also has
// the public keys.
func readCheckpoints(name, account string) (notes [][]byte, keys []string, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		note, err := os.ReadFile(name)
		return [][]byte{note}, nil, err
	}
	folder, err := audit.OpenCheckpointDir(name)
	if err != nil {
		return nil, nil, err
	}
	notes, err = folder.Notes(account)
	if err == nil && len(notes) == 0 {
		// otherwise a wrong account name would look like a valid log
		err = fmt.Errorf("%w: no checkpoint of %q in %s", audit.ErrNotSigned, account, name)
	}
	keys, keysErr := folder.PublicKeys(account)
	return notes, keys, errors.Join(err, keysErr)
}
