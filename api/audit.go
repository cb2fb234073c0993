package api

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
