package api

// Checkpoints are what was signed of an account's audit log.
type Checkpoints struct {
	Items     []Checkpoint `json:"items" doc:"By growing size."`
	PublicKey string       `json:"publicKey,omitempty" doc:"With which this server signs; not there if it does not. An auditor gets it on another way, too."`
	Next      int64        `json:"next,omitempty" doc:"What to say as after for the next page; not there if this is the last."`
}

// Checkpoint says what a log was when it was size records long.
type Checkpoint struct {
	Size int64  `json:"size"`
	Note string `json:"note" doc:"The signed note, to be kept byte for byte where nobody who can write to the store can reach it."`
}

// Findings are where the audit log of an account does not agree with what its runs know and what was done.
type Findings struct {
	Items []Finding      `json:"items" doc:"The worst first; 1000 at most."`
	Count map[string]int `json:"count" doc:"How many there are, by code."`
}

// Finding is one place where the books do not agree.
type Finding struct {
	Severity string `json:"severity" enum:"page,warn,info" doc:"How soon somebody should look."`
	Code     string `json:"code"`
	RunID    string `json:"runId,omitempty"`
	Request  string `json:"request,omitempty"`
	Seq      int64  `json:"seq,omitempty" doc:"The record that it is about."`
	Text     string `json:"text"`
}
