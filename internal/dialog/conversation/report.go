package conversation

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
		if !a.Status.Open() && a.Status != Withdrawn && a.Again == "" { // no agent asks whether to start again
			addRow(&r, rowOf(a), 1)
		}
	}
	return r
}

// add adds a row times a factor.
func addRow(r *Report, x Row, factor int) {
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
func addAll(r *Report, other Report, factor int) {
	r.Conversations += factor * other.Conversations
	r.Runs += factor * other.Runs
	r.RunsWithQuestions += factor * other.RunsWithQuestions
	for _, row := range other.Rows {
		addRow(r, row, factor)
	}
}

// empty reports whether a report has only zeros.
func isEmpty(r *Report) bool {
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
	addAll(&after, before, -1)
	if isEmpty(&after) {
		return nil
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(conversation)) // never fails
	report, err := open[Report](ctx, tx, ReportDocument, fmt.Sprintf("%s/%d", tx.h.now().Format(dayFormat), h.Sum32()%reportShards))
	if err == nil {
		addAll(report, after, 1)
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
			addAll(&report, one, 1)
		}
		after = page[len(page)-1].ID
	}
}
