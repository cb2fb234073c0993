package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/store"
)

// exportedRun is everything that is known of a run, in the clear.
type exportedRun struct {
	store.History
	Input      json.RawMessage            `json:",omitempty"`
	Outcome    json.RawMessage            `json:",omitempty"`
	Questions  map[string]json.RawMessage `json:",omitempty"` // by interrupt
	Answers    map[string]json.RawMessage `json:",omitempty"` // by interrupt
	Receipts   map[string]json.RawMessage `json:",omitempty"` // by interrupt and number
	Checkpoint map[string][]byte          `json:",omitempty"` // by part
	// instead of those in the history, which are encrypted
	Documents []exportedDocument `json:",omitempty"`
	// what cannot be opened, and is missing
	Unreadable []string `json:",omitempty"`
}

// exportedDocument is a paper with its body opened.
type exportedDocument struct {
	Kind             store.DocumentKind
	ID               string
	Revision         int64
	Created, Updated time.Time
	Body             json.RawMessage `json:",omitempty"`
	Facts            json.RawMessage `json:",omitempty"`
}

// ExportAccount writes everything that is known of an account as JSON in the clear: one line for
// each run, and then lines with the grants, counters and conversations of the account, if it has
// any. It returns how many runs there were. What cannot be opened is left out, and named in its
// line; after everything else was written, ErrUnreadable says that there was something.
func (ad *Admin) ExportAccount(ctx context.Context, account string, w io.Writer) (int, error) {
	out := json.NewEncoder(w)
	count := 0
	var unread error
	for run, err := range ad.docs.EachRun(ctx, account, store.RunFilter{}) {
		if err != nil {
			return count, err
		}
		line, err := ad.exportRun(ctx, run)
		if docs.IsNotFound(err) {
			continue // deleted in the meantime
		}
		if err == nil {
			err = out.Encode(line)
		}
		if err != nil {
			return count, err
		}
		if count++; unread == nil && len(line.Unreadable) > 0 {
			unread = fmt.Errorf("%w: a part of %s, and perhaps of others: their lines say which", errs.ErrUnreadable, run.ID)
		}
	}
	for _, kind := range append([]store.DocumentKind{docs.GrantKind, docs.CounterKind}, docs.ConversationKinds...) {
		err := ad.writeExportedDocuments(ctx, account, kind, out)
		if err != nil && !errors.Is(err, errs.ErrUnreadable) {
			return count, err // and not as if everything else was written
		}
		unread = errors.Join(unread, err)
	}
	return count, unread
}

// exportRun opens everything that is sealed in a run, and drops the sealed bytes, which are of no
// use elsewhere.
func (ad *Admin) exportRun(ctx context.Context, run store.Run) (*exportedRun, error) {
	history, err := ad.store.History(ctx, run.Account, run.ID)
	if err != nil {
		return nil, err
	}
	x := &exportedRun{History: history, Questions: map[string]json.RawMessage{}, Answers: map[string]json.RawMessage{}, Receipts: map[string]json.RawMessage{}}
	var failures []error
	note := func(err error) {
		if errors.Is(err, errs.ErrUnreadable) {
			x.Unreadable = append(x.Unreadable, err.Error())
			return
		}
		failures = append(failures, err)
	}
	clear := func(data []byte, err error) []byte {
		note(err)
		return data
	}
	x.Input = clear(ad.store.Input(x.Run))
	x.Outcome = clear(ad.store.Outcome(run.Account, run.ID, x.Run.Outcome))
	// the ref is internal to the provider
	x.Run.ProviderRef, x.Run.Input, x.Run.Outcome = nil, nil, nil
	for n := range x.Interrupts {
		i := &x.Interrupts[n]
		x.Questions[i.ID] = clear(ad.store.Data(*i))
		x.Answers[i.ID] = clear(ad.store.Answer(*i))
		i.Data, i.Answer = nil, nil
	}
	for n := range x.Effects {
		f := &x.Effects[n]
		x.Receipts[fmt.Sprintf("%s/%d", f.Interrupt, f.Attempt)] = clear(ad.store.EffectReceipt(*f))
		f.Receipt = nil
	}
	for n := range x.Resumes {
		x.Resumes[n].Receipt.Outcome = nil // as the run's
	}
	var papers error
	x.Documents, papers = ad.exportDocuments(x.History.Documents)
	note(papers)
	checkpoint, err := ad.store.Load(ctx, store.Key{Account: run.Account, Run: run.ID})
	if err == nil {
		x.Checkpoint = checkpoint.Parts
	} else if !docs.IsNotFound(err) {
		note(err)
	}
	return x, errors.Join(failures...)
}

// writeExportedDocuments writes papers that belong to no run.
func (ad *Admin) writeExportedDocuments(ctx context.Context, account string, kind store.DocumentKind, out *json.Encoder) error {
	var unread error
	for after := ""; ; {
		papers, err := ad.store.Documents(ctx, account, kind, store.DocumentFilter{After: after, Limit: docs.DocumentsPerPage})
		if err != nil || len(papers) == 0 {
			return cmp.Or(err, unread)
		}
		after = papers[len(papers)-1].ID
		var line struct {
			Papers     []exportedDocument
			Unreadable []string `json:",omitempty"`
		}
		if line.Papers, err = ad.exportDocuments(papers); err != nil && !errors.Is(err, errs.ErrUnreadable) {
			return err
		} else if err != nil {
			line.Unreadable, unread = []string{err.Error()}, cmp.Or(unread, err)
		}
		if err := out.Encode(line); err != nil {
			return err
		}
	}
}

// exportDocuments opens papers. The salt of a run stays where it is: it must not outlive the run.
func (ad *Admin) exportDocuments(papers []store.Document) (opened []exportedDocument, err error) {
	for _, p := range papers {
		body, failure := ad.store.Body(p)
		if failure == nil && p.Kind == docs.RunMetaKind {
			var d docs.RunMeta
			d, failure = ad.docs.DecodeMeta(p)
			d.Salt = nil
			body, _ = json.Marshal(d) // strings always have a JSON
		}
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("executor: the %s of %s: %w", p.Kind, p.ID, failure))
		}
		opened = append(opened, exportedDocument{p.Kind, p.ID, p.Revision, p.Created, p.Updated, body, p.Index})
	}
	return opened, err
}
