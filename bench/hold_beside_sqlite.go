package main

import (
	"database/sql"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/store"
)

// beside writes papers and lines of the log. The deadline of a question needs no change of its own here: it was asked with the right one.
func (t bareTx) beside(beside store.Beside) error {
	for _, p := range beside.Papers {
		if err := t.paper(p); err != nil {
			return err
		}
	}
	return t.record(beside.Audit)
}

func (t bareTx) paper(p store.PaperChange) error {
	var facts, next any
	if p.Facts != nil {
		facts = string(p.Facts)
	}
	if !p.Next.IsZero() {
		next = p.Next.UnixMicro()
	}
	if p.Base == 0 {
		return t.exec(bareAddPaper, t.b.account, string(p.Kind), []byte(p.ID), []byte(p.Run), p.Body, facts, next, t.now)
	}
	return t.exec(bareAmendPaper, t.b.account, string(p.Kind), []byte(p.ID), p.Base, p.Body, facts, next, t.now)
}

// record adds lines to the log. Each has the hash of the one before it, so that one has to be read, and nobody else may write meanwhile.
func (t bareTx) record(lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	var head chain.Head
	var hash []byte
	err := t.tx.StmtContext(t.ctx, t.b.writing[bareHead]).QueryRowContext(t.ctx, t.b.account).Scan(&head.Seq, &hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	copy(head.Hash[:], hash)
	for _, object := range lines {
		raw, next, err := chain.Next(head, time.UnixMicro(t.now), object)
		if err != nil {
			return err
		}
		if err := t.exec(bareLine, t.b.account, next.Seq, raw, next.Hash[:]); err != nil {
			return err
		}
		head = next
	}
	return nil
}
