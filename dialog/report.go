package dialog

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

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

// countOf returns the report of what is in a conversation.
func countOf(s *stored) Report {
	var r Report
	if s.ID != "" {
		r.Conversations = 1
	}
	for _, link := range s.Runs {
		if link.Question == "" && link.Settled {
			r.Runs++
			if link.Asked {
				r.RunsWithQuestions++
			}
		}
	}
	for _, a := range s.Questions {
		if !a.Status.Open() && a.Status != Withdrawn {
			r.add(rowOf(a), 1)
		}
	}
	return r
}

// add adds a row times a factor.
func (r *Report) add(x Row, factor int) {
	at, found := slices.BinarySearchFunc(r.Rows, x, func(x, y Row) int {
		return cmp.Or(cmp.Compare(x.Agent, y.Agent), cmp.Compare(x.Template, y.Template))
	})
	if !found {
		r.Rows = slices.Insert(r.Rows, at, Row{Agent: x.Agent, Template: x.Template})
	}
	row := &r.Rows[at]
	for _, n := range []struct {
		to *int
		by int
	}{
		{&row.Questions, x.Questions}, {&row.Answered, x.Answered}, {&row.Confirmed, x.Confirmed}, {&row.Escaped, x.Escaped}, {&row.Expired, x.Expired},
		{&row.Lapsed, x.Lapsed}, {&row.HandedOver, x.HandedOver}, {&row.ReAsks, x.ReAsks}, {&row.Unclear, x.Unclear},
		{&row.Semantic, x.Semantic}, {&row.Corrections, x.Corrections}, {&row.SemanticCorrections, x.SemanticCorrections},
	} {
		*n.to += factor * n.by
	}
	row.Waited += time.Duration(factor) * x.Waited
}

// addAll adds a report times a factor.
func (r *Report) addAll(other Report, factor int) {
	r.Conversations += factor * other.Conversations
	r.Runs += factor * other.Runs
	r.RunsWithQuestions += factor * other.RunsWithQuestions
	for _, row := range other.Rows {
		r.add(row, factor)
	}
}

// empty reports whether a report has only zeros.
func (r *Report) empty() bool {
	return r.Conversations == 0 && r.Runs == 0 && r.RunsWithQuestions == 0 &&
		!slices.ContainsFunc(r.Rows, func(row Row) bool { return row != Row{Agent: row.Agent, Template: row.Template} })
}

// rowOf returns the row of one question.
func rowOf(a *Asking) Row {
	template := a.Template
	if len(a.Turns) > 0 {
		template = a.Turns[0].Template
	}
	template, _, _ = strings.Cut(template, "+")
	row := Row{Agent: a.Question.Agent, Template: template, Questions: 1, ReAsks: a.ReAsks, Unclear: a.Unclear}
	switch a.Status {
	case Answered:
		row.Answered = 1
		if !a.AskedAt.IsZero() {
			row.Waited = a.EndedAt.Sub(a.AskedAt)
		}
		if a.Answer.Yes {
			row.Confirmed = 1
		}
		if a.Answer.Method == ByPerson {
			row.HandedOver = 1
		}
		guessed := a.Answer.Method == BySemantics || a.Answer.Method == ByReadBack && a.Answer.Score < 1 || a.CorrectedFrom == BySemantics
		if guessed {
			row.Semantic = 1
		}
		if a.Answer.Method == ByCorrection {
			row.Corrections, row.SemanticCorrections = 1, row.Semantic
		}
	case Escaped:
		row.Escaped = 1
	case Expired:
		row.Expired = 1
	case Lapsed:
		row.Lapsed = 1
	case Queued, Asked, Confirming, Collecting, Comparing, Drafted, HandedOver, Withdrawn:
	}
	return row
}

// orElseMethod returns the method with which an answer was first recognized. A guess that was read
// back is a guess.
func orElseMethod(first Method, before Answer) Method {
	switch {
	case first != "":
		return first
	case before.Method == ByReadBack && before.Score < 1:
		return BySemantics
	}
	return before.Method
}

// reportShards is the number of documents per day, so that conversations seldom wait for each
// other.
const reportShards = 8

const dayFormat = "2006-01-02"

// count adds what a step has ended to the report of the day.
func (tx *tx) count(ctx context.Context, conversation string, before, after Report) error {
	if tx.final != nil { // deleted: the report stays
		after = *tx.final
	}
	after.addAll(before, -1)
	if after.empty() {
		return nil
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(conversation)) // never fails
	report, err := open[Report](ctx, tx, ReportDocument, fmt.Sprintf("%s/%d", tx.h.now().Format(dayFormat), h.Sum32()%reportShards))
	if err == nil {
		report.addAll(after, 1)
	}
	return err
}

// Report summarizes the conversations of an account on the days (UTC) from one time to another. A
// zero time means that there is no limit. Deleted conversations are included.
func (h *Handler) Report(ctx context.Context, account string, from, to time.Time) (Report, error) {
	report := Report{Rows: []Row{}}
	after := ""
	if !from.IsZero() {
		after = from.UTC().Format(dayFormat)
	}
	for {
		page, err := h.config.Store.Documents(ctx, account, ReportDocument, store.DocumentFilter{After: after, Limit: 100})
		if err != nil || len(page) == 0 {
			return report, err
		}
		for _, doc := range page {
			day, _, _ := strings.Cut(doc.ID, "/")
			if !to.IsZero() && day > to.UTC().Format(dayFormat) {
				return report, nil
			}
			var one Report
			if err := h.decode(doc, &one); err != nil {
				return report, err
			}
			report.addAll(one, 1)
		}
		after = page[len(page)-1].ID
	}
}
