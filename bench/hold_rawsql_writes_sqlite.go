package main

import (
	"database/sql"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/store"
)

// writes writes documents and audit records. The deadline of a request needs no separate change
// here: it is correct from the start.
func (t rawTx) writes(beside store.Writes) error {
	for _, p := range beside.Documents {
		if err := t.document(p); err != nil {
			return err
		}
	}
	return t.record(beside.Audit)
}

func (t rawTx) document(p store.DocumentChange) error {
	var facts, next any
	if p.Index != nil {
		facts = string(p.Index)
	}
	if !p.DueAt.IsZero() {
		next = p.DueAt.UnixMicro()
	}
	if p.BaseRevision == 0 {
		return t.exec(rawAddDocument, t.b.account, string(p.Kind), []byte(p.ID), []byte(p.Run), p.Body, facts, next, t.now)
	}
	return t.exec(rawAmendDocument, t.b.account, string(p.Kind), []byte(p.ID), p.BaseRevision, p.Body, facts, next, t.now)
}

// record appends audit records. Each contains the hash of the previous one, which must be read
// under the write lock.
func (t rawTx) record(lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	var head chain.Head
	var hash []byte
	err := t.tx.StmtContext(t.ctx, t.b.writing[rawAuditHead]).QueryRowContext(t.ctx, t.b.account).Scan(&head.Seq, &hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	copy(head.Hash[:], hash)
	for _, object := range lines {
		raw, next, err := chain.Next(head, time.UnixMicro(t.now), object)
		if err != nil {
			return err
		}
		if err := t.exec(rawAuditLine, t.b.account, next.Seq, raw, next.Hash[:]); err != nil {
			return err
		}
		head = next
	}
	return nil
}
