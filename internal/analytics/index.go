// Package analytics computes reports from the history of decisions: how long decisions take, what
// people decide, how the load is distributed, signs of rubber-stamping, and which rules would save
// waiting time.
//
// It reads the index that the executor stores with each request and each vote. The index contains
// only countable fields and nothing of what was asked or answered. Reports are computed here and
// not in the store, so they are the same for every store.
package analytics

// RequestIndex is the index of a request. Times are Unix milliseconds, 0 if not set.
type RequestIndex struct {
	Kind   string `json:"kind"`
	Graph  string `json:"graph"`
	Action string `json:"action,omitempty"`
	// Rules are the rules that required the request.
	Rules     []string `json:"rules,omitempty"`
	Route     string   `json:"route"`
	Requester string   `json:"requester,omitempty"`
	Risk      int      `json:"risk"`
	// WordCount is the number of words to read.
	WordCount int    `json:"words"`
	State     string `json:"state"`
	// Outcome is approve, reject, answer, expire, abandon or withdraw, once decided. By is the
	// person whose vote decided.
	Outcome   string `json:"outcome,omitempty"`
	By        string `json:"by,omitempty"`
	Created   int64  `json:"created"`
	Delivered int64  `json:"delivered"`
	Viewed    int64  `json:"viewed"` // the first view by any person
	Decided   int64  `json:"decided"`
	Deadline  int64  `json:"deadline"`
	Revision  int64  `json:"revision"`
	Votes     int    `json:"votes"`
	Edited    int    `json:"edited"`
	// ForEndUser is 1 for a question to the end user of the run. Reports leave it out.
	ForEndUser int `json:"for_end_user,omitempty"`
	// Restricted is 1 if only some people may see the request.
	Restricted     int `json:"restricted,omitempty"`
	Clarifications int `json:"asked"` // number of clarification requests
	Steps          int `json:"steps"` // route steps that were processed
	Paged          int `json:"paged"`
}

// VoteIndex is the index of one vote.
type VoteIndex struct {
	Request   string `json:"request"`
	Actor     string `json:"actor"`
	Verb      string `json:"verb"` // approve, reject or respond; at a gate one of the first two
	Kind      string `json:"kind"`
	Action    string `json:"action,omitempty"`
	Via       string `json:"via,omitempty"`
	Auth      string `json:"auth,omitempty"`
	WordCount int    `json:"words"`
	At        int64  `json:"at"`
	Created   int64  `json:"created"` // creation of the request
	Viewed    int64  `json:"viewed"`  // first view by this person; 0 if never
	Settles   int    `json:"settles"`
	Edits     int    `json:"edits"`
	// ForEndUser is 1 for an answer of the end user of the run. Reports leave it out.
	ForEndUser int `json:"for_end_user,omitempty"`
}
