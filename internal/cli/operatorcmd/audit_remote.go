package operatorcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/serve"
)

// auditSource names a log: that of an account on a store, or that of the caller's account on a
// server, for which an API key with the role auditor suffices.
type auditSource struct {
	serve.StoreFlags
	cli.Remote
	Account string `help:"The account, with a store. Without it, the log of your account on the server is read, with your API key."`
}

// server returns the server whose log is read.
func (c auditSource) server() (*client.Client, error) {
	if c.Store != "" || c.Config != "" && c.Token == "" {
		return nil, cli.Usagef("--account is required with a store")
	}
	return c.Client()
}

// eachLine reads the log of the caller's account after a record.
func eachLine(ctx context.Context, to *client.Client, after int64, use func(line []byte, seq int64) (more bool, err error)) error {
	for {
		page, err := to.AuditLines(ctx, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for line := range bytes.Lines(page) {
			var record struct {
				Seq int64 `json:"seq"`
			}
			// a changed record may be anything, but it must not repeat the page endlessly
			if err := json.Unmarshal(line, &record); err != nil || record.Seq <= after {
				record.Seq = after + 1
			}
			after = record.Seq
			if more, err := use(line, after); err != nil || !more {
				return err
			}
		}
	}
}

// verifyRemote verifies the log of the caller's account. Its signed checkpoints count if a public
// key is trusted.
func (c *auditVerify) verifyRemote(ctx context.Context, p *cli.Program, against audit.VerifyOptions, out io.Writer) error {
	to, err := c.server()
	if err != nil {
		return err
	}
	me, err := to.Me(ctx)
	if err != nil {
		return err
	}
	if !against.Trust.IsEmpty() { // before the records, so that none can be longer
		notes, err := fetchCheckpoints(ctx, to)
		if err != nil {
			return err
		}
		against.KnownCheckpoints = append(against.KnownCheckpoints, notes...)
	}
	lines, w := io.Pipe()
	defer lines.Close()
	go func() {
		w.CloseWithError(eachLine(ctx, to, 0, func(line []byte, _ int64) (bool, error) {
			_, err := w.Write(line)
			return err == nil, err
		}))
	}()
	report, err := audit.VerifyFile(lines, me.Account, against, out)
	return printVerified(p, report, err)
}

func fetchCheckpoints(ctx context.Context, to *client.Client) (notes [][]byte, err error) {
	for after := int64(0); ; {
		page, err := to.Checkpoints(ctx, after)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			notes = append(notes, []byte(item.Note))
		}
		if after = page.Next; after == 0 {
			return notes, nil
		}
	}
}

// exportRemote exports the records of the caller's account.
func (c *auditExport) exportRemote(ctx context.Context, p *cli.Program) error {
	to, err := c.server()
	if err != nil {
		return err
	}
	if audit.Format(c.Format) != audit.JSONL {
		return cli.Usagef("--format %s needs the store: pass --account", c.Format)
	}
	if c.From > 1 {
		return cli.Usagef("--from needs the store: pass --account; an export of a server starts with the first record, so that it can be verified")
	}
	count := 0
	err = eachLine(ctx, to, 0, func(line []byte, seq int64) (bool, error) {
		if c.To > 0 && seq > c.To {
			return false, nil
		}
		count++
		_, err := p.Out.Write(line)
		return err == nil, err
	})
	if err == nil && count == 0 {
		err = fmt.Errorf("%w: the account of this API key", cli.ErrNoLog)
	}
	return err
}
