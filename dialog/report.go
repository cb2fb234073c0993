package dialog

import "time"

// Report is a summary of conversations.
type Report struct {
	Conversations int `json:"conversations"`
	// Runs counts the runs that have ended.
	Runs int `json:"runs"`
	// RunsWithQuestions counts the runs that asked at least one question. The clarification rate is
	// RunsWithQuestions / Runs.
	RunsWithQuestions int   `json:"runs_with_questions"`
	Rows              []Row `json:"rows"` // by agent and template
}

// Row counts the questions of one agent with one wording that have ended.
type Row struct {
	Agent string `json:"agent"`
	// Template is the wording with which the question was last asked, without remarks.
	Template  string `json:"template"`
	Questions int    `json:"questions"`
	Answered  int    `json:"answered"`
	// Confirmed counts confirmations that were answered with yes.
	Confirmed int `json:"confirmed"`
	Escaped   int `json:"escaped"`
	Expired   int `json:"expired"`
	Lapsed    int `json:"lapsed"`
	// HandedOver counts questions that a person answered for the user.
	HandedOver int `json:"handed_over"`
	ReAsks     int `json:"re_asks"`
	Unclear    int `json:"unclear"` // replies
	// Semantic counts answers that a model matched; Corrections those that were corrected after
	// they were accepted, and SemanticCorrections those of them that a model had matched.
	Semantic            int `json:"semantic"`
	Corrections         int `json:"corrections"`
	SemanticCorrections int `json:"semantic_corrections"`
	// Waited is the sum of the times from question to answer, for Answered.
	Waited time.Duration `json:"waited"`
}
