// Package analytics answers questions to the history of decisions: how long they take, how often people say what, who carries the load, what
// looks like rubber-stamping, and which rule would have saved whom how much time.
//
// It reads what the executor writes down beside each request and each word on it: facts that can be counted, and nothing of what was asked
// or said. The answers are the same on every store, because they are worked out here.
package analytics

// RequestIndex is what may be counted of a request. Times are milliseconds since 1970, 0 for none.
type RequestIndex struct {
	Kind      string `json:"kind"`
	Graph     string `json:"graph"`
	Action    string `json:"action,omitempty"`
	Rule      string `json:"rule,omitempty"`
	Route     string `json:"route"`
	Requester string `json:"requester,omitempty"`
	Risk      int    `json:"risk"`
	// Words is how many there are to read.
	WordCount int    `json:"words"`
	State     string `json:"state"`
	// Outcome is approve, reject, answer, expire, escape or withdraw, once there is one; By is whose word settled it.
	Outcome        string `json:"outcome,omitempty"`
	By             string `json:"by,omitempty"`
	Created        int64  `json:"created"`
	Delivered      int64  `json:"delivered"`
	Viewed         int64  `json:"viewed"` // by anybody, the first time
	Decided        int64  `json:"decided"`
	Deadline       int64  `json:"deadline"`
	Revision       int64  `json:"revision"`
	Votes          int    `json:"votes"`
	Edited         int    `json:"edited"`
	Clarifications int    `json:"asked"` // how often the run was asked back
	Steps          int    `json:"steps"` // of the route, that were taken
	Paged          int    `json:"paged"`
}

// VoteIndex is what may be counted of one person's word.
type VoteIndex struct {
	Request   string `json:"request"`
	Actor     string `json:"actor"`
	Verb      string `json:"verb"` // approve, reject or respond; at a gate one of the first two
	Kind      string `json:"kind"`
	Action    string `json:"action,omitempty"`
	Rule      string `json:"rule,omitempty"`
	Via       string `json:"via,omitempty"`
	Auth      string `json:"auth,omitempty"`
	WordCount int    `json:"words"`
	At        int64  `json:"at"`
	Created   int64  `json:"created"` // the request
	Viewed    int64  `json:"viewed"`  // by this person, the first time; 0 if never
	Settles   int    `json:"settles"`
	Edits     int    `json:"edits"`
}
