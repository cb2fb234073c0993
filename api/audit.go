package api

import (
	"encoding/json"
	"time"
)

// AuditRecords is a page of the records of an audit log, newest first.
type AuditRecords struct {
	Items   []AuditRecord `json:"items"`
	Next    int64         `json:"next,omitempty" doc:"The value of before for the next page; omitted if the search reached the beginning of the log or of the period."`
	Scanned int           `json:"scanned" doc:"How many records were read, at most 20000. A search that found fewer records than a page and has a next page stopped there."`
}

// AuditRecord is one record of an audit log. A record whose stored bytes cannot be read has only a
// sequence number.
type AuditRecord struct {
	Seq     int64           `json:"seq"`
	Time    time.Time       `json:"time,omitzero"`
	Kind    string          `json:"kind,omitempty"`
	Actor   string          `json:"actor,omitempty" doc:"The id of the person, key or component that acted."`
	RunID   string          `json:"runId,omitempty"`
	Request string          `json:"request,omitempty"`
	Body    json.RawMessage `json:"body,omitempty" doc:"The content of the record. Its fields depend on the kind."`
}

// AuditVerification is the result of a verification of an audit log.
type AuditVerification struct {
	Records     int64         `json:"records" doc:"How many records were verified, from the first."`
	Signed      int64         `json:"signed" doc:"The last record that a checkpoint of this server covers; 0 if it does not sign."`
	Checkpoints int           `json:"checkpoints" doc:"How many signed checkpoints the log extends."`
	Problem     *AuditProblem `json:"problem,omitempty" doc:"The first problem; omitted if the log is valid."`
}

// AuditProblem is the first problem of an invalid audit log.
type AuditProblem struct {
	Seq   int64  `json:"seq"`
	Fault string `json:"fault" doc:"A code, such as edited, missing or rewritten."`
	Text  string `json:"text"`
}

// Checkpoints is a page of signed checkpoints of an account's audit log.
type Checkpoints struct {
	Items     []Checkpoint `json:"items" doc:"In order of growing size."`
	PublicKey string       `json:"publicKey,omitempty" doc:"The public key of this server's signatures; omitted if it does not sign. An auditor should also get it over another channel."`
	Next      int64        `json:"next,omitempty" doc:"The value of after for the next page; omitted on the last page."`
}

// Checkpoint is the signed state of a log with size records.
type Checkpoint struct {
	Size int64  `json:"size"`
	Note string `json:"note" doc:"The signed note. Keep it byte for byte, out of reach of anyone who can write to the store."`
}

// Findings is the result of a reconciliation of the audit log, runs and effects of an account.
type Findings struct {
	Items []Finding      `json:"items" doc:"The most severe first, at most 1000."`
	Count map[string]int `json:"count" doc:"Number of findings by code."`
}

// Finding is one discrepancy.
type Finding struct {
	Severity string `json:"severity" enum:"page,warn,info" doc:"The severity: how soon an operator should act."`
	Code     string `json:"code"`
	RunID    string `json:"runId,omitempty"`
	Request  string `json:"request,omitempty"`
	Seq      int64  `json:"seq,omitempty" doc:"The sequence number of the audit record."`
	Text     string `json:"text"`
}
